"""What happened since the window opened: memory, notices, routing decisions. Bounded. UI thread only."""

from collections import deque
from time import time
from typing import Final

from PySide6.QtCore import QObject, Signal

from laya_desktop.core.events import MemorySample, Notice
from laya_desktop.core.types import Decision
from laya_desktop.ui.bridge import Bridge

SAMPLE_SECONDS: Final = 120


class SessionLog(QObject):
    """Collects from the bridge, so that pages that are opened later can show the past."""

    decision_added = Signal()
    notice_added = Signal()

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self.samples: deque[MemorySample] = deque()
        self.notices: deque[Notice] = deque(maxlen=500)
        self.decisions: deque[tuple[float, Decision]] = deque(maxlen=200)
        bridge.memory_changed.connect(self._add_sample)
        bridge.notice.connect(self._add_notice)
        bridge.decided.connect(self._add_decision)

    def _add_sample(self, sample: MemorySample) -> None:
        self.samples.append(sample)
        while self.samples[0].at < sample.at - SAMPLE_SECONDS - 2:
            self.samples.popleft()

    def _add_notice(self, notice: Notice) -> None:
        self.notices.append(notice)
        self.notice_added.emit()

    def _add_decision(self, decision: Decision) -> None:
        self.decisions.append((time(), decision))
        self.decision_added.emit()
