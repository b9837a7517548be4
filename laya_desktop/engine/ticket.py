"""A request on its way through the engine."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from laya_desktop.core.errors import ErrorInfo
from laya_desktop.core.events import TERMINAL, RequestEvent
from laya_desktop.core.types import Caller, ChatRequest, Decision
from laya_desktop.engine.scheduler import Priority

log = logging.getLogger(__name__)

_PRIORITIES = {
    Caller.CHAT: Priority.INTERACTIVE,
    Caller.QUICK_PROMPT: Priority.INTERACTIVE,
    Caller.API: Priority.API,
    Caller.CLI: Priority.BACKGROUND,
}


@dataclass
class Ticket:
    """After its terminal event nothing more reaches the sink."""

    request: ChatRequest
    sink: Callable[[RequestEvent], None]
    decision: Decision
    tried: list[str] = field(default_factory=list)
    position: int = 0
    task: asyncio.Task[ErrorInfo | None] | None = None
    generating: bool = False
    ended: bool = False

    @property
    def priority(self) -> Priority:
        return _PRIORITIES[self.request.caller]

    def emit(self, event: RequestEvent) -> None:
        if self.ended:
            return
        self.ended = isinstance(event, TERMINAL)
        try:
            self.sink(event)
        except Exception:
            log.exception("the reader of request %s failed", self.request.id)
