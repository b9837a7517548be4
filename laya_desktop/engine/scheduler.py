"""Decides when a request runs. Pure: no clock, no I/O, no side effects; the engine acts on what it says.

A request waits in one bounded queue until its model has a free slot and the whole engine has one. Order is
first in, first out among those that can start.
"""

from dataclasses import dataclass

from laya_desktop.core.errors import ErrorCode, LayaError


@dataclass(frozen=True)
class Limits:
    """`concurrent` over all models, `per_model` streams of one model, `queue` waiting requests,
    `queue_timeout_s` seconds a request may wait."""

    concurrent: int
    per_model: int
    queue: int
    queue_timeout_s: float


@dataclass(frozen=True)
class _Waiting:
    model: str
    deadline: float


class Scheduler:
    """Owned by the engine thread. Times are seconds of one monotonic clock, given by the caller."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._waiting: dict[str, _Waiting] = {}
        self._running: dict[str, str] = {}
        self._streams: dict[str, int] = {}

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def submit(self, request_id: str, model: str, now: float) -> None:
        """Queue a request. Raises LayaError(QUEUE_FULL) if it would have to wait and the queue is full."""
        if not self._can_start(model) and len(self._waiting) >= self.limits.queue:
            raise LayaError(
                ErrorCode.QUEUE_FULL,
                f"{len(self._waiting)} requests are waiting already.",
                hint="Try again in a moment, or raise scheduler.max_queue.",
                retry_after_s=1.0,
            )
        self._waiting[request_id] = _Waiting(model, now + self.limits.queue_timeout_s)

    def start(self) -> list[str]:
        """Take the requests that start now out of the queue, oldest first."""
        started: list[str] = []
        for request_id, entry in list(self._waiting.items()):
            if len(self._running) >= self.limits.concurrent:
                break
            if self._can_start(entry.model):
                del self._waiting[request_id]
                self._running[request_id] = entry.model
                self._streams[entry.model] = self._streams.get(entry.model, 0) + 1
                started.append(request_id)
        return started

    def remove(self, request_id: str) -> None:
        """Forget a request: finished, cancelled or expired. Unknown ids are ignored."""
        self._waiting.pop(request_id, None)
        model = self._running.pop(request_id, None)
        if model is not None:
            self._streams[model] -= 1
            if not self._streams[model]:
                del self._streams[model]

    def expire(self, now: float) -> list[str]:
        """Take out the requests whose time in the queue is over."""
        expired = [request_id for request_id, entry in self._waiting.items() if entry.deadline <= now]
        for request_id in expired:
            del self._waiting[request_id]
        return expired

    def next_deadline(self) -> float | None:
        """When `expire` has to be asked next."""
        return min((entry.deadline for entry in self._waiting.values()), default=None)

    def positions(self) -> list[str]:
        """Waiting requests in order: the first is next."""
        return list(self._waiting)

    def _can_start(self, model: str) -> bool:
        return (
            len(self._running) < self.limits.concurrent
            and self._streams.get(model, 0) < self.limits.per_model
        )
