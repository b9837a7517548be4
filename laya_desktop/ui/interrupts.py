"""Ctrl-C in the terminal, and SIGTERM, end the app as closing the window does. UI thread only."""

import contextlib
import signal
import socket
from collections.abc import Callable

from PySide6.QtCore import QObject, QSocketNotifier


class Interrupts(QObject):
    """Python runs signal handlers between bytecodes only: a byte in a socket wakes Qt's loop for them."""

    def __init__(self, quit_app: Callable[[], None]) -> None:
        super().__init__()
        self._near, self._far = socket.socketpair()
        for end in (self._near, self._far):
            end.setblocking(False)
        self._before = signal.set_wakeup_fd(self._far.fileno(), warn_on_full_buffer=False)
        self._handlers = {
            number: signal.signal(number, lambda *_: quit_app()) for number in (signal.SIGINT, signal.SIGTERM)
        }
        self._notifier = QSocketNotifier(self._near.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._drain)

    def close(self) -> None:
        """Give the signals back."""
        self._notifier.setEnabled(False)
        signal.set_wakeup_fd(self._before)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._near.close()
        self._far.close()

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._near.recv(64)
