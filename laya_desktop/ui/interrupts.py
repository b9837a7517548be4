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
        self._quit_app = quit_app
        self._near, self._far = socket.socketpair()
        for end in (self._near, self._far):
            end.setblocking(False)
        self._before = signal.set_wakeup_fd(self._far.fileno(), warn_on_full_buffer=False)
        # The handlers themselves do nothing: they may run in the middle of painting.
        self._handlers = {
            number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)
        }
        self._notifier = QSocketNotifier(self._near.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._wake)

    def close(self) -> None:
        """Give the signals back."""
        self._notifier.setEnabled(False)
        signal.set_wakeup_fd(self._before)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._near.close()
        self._far.close()

    def _wake(self) -> None:
        received = b""
        with contextlib.suppress(BlockingIOError):
            received = self._near.recv(64)
        if any(number in self._handlers for number in received):
            self._quit_app()
