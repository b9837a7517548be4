"""Submitting requests and waiting for their events in tests."""

import itertools
import threading

from laya_desktop.core.events import TERMINAL, Delta, RequestEvent
from laya_desktop.core.types import ChatRequest, Message, Role, Sampling
from laya_desktop.engine.handle import EngineHandle

_ids = itertools.count()
DEADLINE_S = 30


def request(model: str = "auto", text: str = "hello there", max_tokens: int | None = None) -> ChatRequest:
    return ChatRequest(
        id=f"r{next(_ids)}",
        model=model,
        messages=(Message(Role.USER, text),),
        sampling=Sampling(max_tokens=max_tokens),
    )


class Answer:
    """A request's events as they arrive; `wait_for` blocks until one of a kind has come."""

    def __init__(self, handle: EngineHandle, what: ChatRequest) -> None:
        self.request = what
        self.events: list[RequestEvent] = []
        self._arrived = threading.Condition()
        handle.submit(what, self._sink)

    def _sink(self, event: RequestEvent) -> None:
        with self._arrived:
            self.events.append(event)
            self._arrived.notify_all()

    def wait_for(self, kind: type, count: int = 1) -> RequestEvent:
        with self._arrived:
            ok = self._arrived.wait_for(lambda: len(self.of(kind)) >= count, DEADLINE_S)
            assert ok, f"no {kind.__name__} in {self.events}"
            return self.of(kind)[count - 1]

    def end(self) -> RequestEvent:
        with self._arrived:
            ok = self._arrived.wait_for(lambda: bool(self.terminals()), DEADLINE_S)
            assert ok, f"no end in {self.events}"
        return self.terminals()[0]

    def of(self, kind: type) -> list[RequestEvent]:
        return [event for event in self.events if isinstance(event, kind)]

    def terminals(self) -> list[RequestEvent]:
        return [event for event in self.events if isinstance(event, TERMINAL)]

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, Delta))
