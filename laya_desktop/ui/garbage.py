"""Python's cycle collector, kept in the UI thread.

It runs in whichever thread happens to allocate. In the engine's thread it would destroy widgets and timers
that are garbage by then, and Qt crashes when that happens outside the UI thread.
"""

import gc
from typing import Final

from PySide6.QtCore import QObject, QTimer

_INTERVAL_MS: Final = 1000


class UiThreadCollector(QObject):
    """Takes the collector over until `close`."""

    def __init__(self) -> None:
        super().__init__()
        gc.disable()
        # What the start left behind stays for good: looking at it again would cost 13 ms each time.
        gc.freeze()
        self._timer = QTimer(self)
        self._timer.setInterval(_INTERVAL_MS)
        self._timer.timeout.connect(self.collect)
        self._timer.start()

    def collect(self) -> None:
        """Collect the oldest generation that is due, by the interpreter's own thresholds."""
        counts, thresholds = gc.get_count(), gc.get_threshold()
        for generation in (2, 1, 0):
            if thresholds[generation] and counts[generation] > thresholds[generation]:
                gc.collect(generation)
                return

    def close(self) -> None:
        """Give the collector back to the interpreter."""
        self._timer.stop()
        gc.unfreeze()
        gc.enable()
