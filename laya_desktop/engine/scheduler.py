"""Decides when a request runs. Pure: no clock, no I/O, no side effects; the engine acts on what it says.

A request waits in the bounded queue of its model until that model has a free slot and the whole engine has
one. Who is next is decided by, in this order:

1. priority: who types before programs, programs before background work. A request that waited `AGING_S`
   seconds moves up one step, so that nobody starves;
2. fairness: conversations take turns, however many requests one of them sends (start-time fair queueing:
   a request's tag is one more than that of its conversation's last one, but never before the present turn);
3. arrival.
"""

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from laya_desktop.config.schema import Config
from laya_desktop.core.errors import ErrorCode, LayaError

AGING_S = 10.0


class Priority(IntEnum):
    """Lower goes first."""

    INTERACTIVE = 0
    API = 1
    BACKGROUND = 2


@dataclass(frozen=True)
class Limits:
    """`concurrent` over all models, `per_model` streams of one model, `queue` waiting requests of one model,
    `queue_timeout_s` seconds a request may wait."""

    concurrent: int
    per_model: int
    queue: int
    queue_timeout_s: float


def limits_of(config: Config) -> Limits:
    return Limits(
        concurrent=config.scheduler.max_concurrent_requests,
        per_model=config.executor.max_batch_size,
        queue=config.scheduler.max_queue,
        queue_timeout_s=config.scheduler.queue_timeout_ms / 1000,
    )


@dataclass(frozen=True)
class _Waiting:
    request_id: str
    model: str
    priority: Priority
    conversation: str
    tag: int
    arrived: float
    deadline: float

    def urgency(self, now: float) -> int:
        return self.priority - int((now - self.arrived) / AGING_S)


@dataclass
class _Lane:
    """One model: its running streams and its queue, a heap by (tag, arrival) for every priority."""

    streams: int = 0
    waiting: int = 0
    heaps: dict[Priority, list[tuple[int, int, _Waiting]]] = field(
        default_factory=lambda: {priority: [] for priority in Priority}
    )


class Scheduler:
    """Owned by the engine thread. Times are seconds of one monotonic clock, given by the caller. Submitting,
    starting and removing cost O(log n) in the number of waiting requests."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._lanes: dict[str, _Lane] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._running: dict[str, str] = {}
        self._deadlines: list[tuple[float, int, _Waiting]] = []
        self._arrivals = itertools.count()
        self._turn = 0
        self._tags: dict[str, int] = {}

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def waiting_for(self, model: str) -> int:
        """Requests in a model's queue."""
        lane = self._lanes.get(model)
        return lane.waiting if lane else 0

    def submit(
        self,
        request_id: str,
        model: str,
        now: float,
        *,
        priority: Priority = Priority.API,
        conversation: str | None = None,
    ) -> int:
        """Queue a request; its place in the model's queue if nothing changes, 1 is next.

        Raises LayaError(QUEUE_FULL) if it would have to wait and the model's queue is full.
        """
        lane = self._lanes.get(model) or _Lane()
        if not self._has_room(lane) and lane.waiting >= self.limits.queue:
            raise LayaError(
                ErrorCode.QUEUE_FULL,
                f"{lane.waiting} requests are waiting for '{model}' already.",
                hint="Try again in a moment, or raise scheduler.max_queue.",
                retry_after_s=1.0,
            )
        who = conversation or request_id
        tag = self._tags[who] = max(self._turn, self._tags.get(who, 0)) + 1
        entry = _Waiting(request_id, model, priority, who, tag, now, now + self.limits.queue_timeout_s)
        order = next(self._arrivals)
        self._waiting[request_id] = entry
        self._lanes[model] = lane
        lane.waiting += 1
        heapq.heappush(lane.heaps[priority], (tag, order, entry))
        heapq.heappush(self._deadlines, (entry.deadline, order, entry))
        return lane.waiting

    def start(self, now: float) -> list[str]:
        """Take the requests that start now out of the queues, the most urgent first."""
        started: list[str] = []
        while len(self._running) < self.limits.concurrent:
            entry = self._next(now)
            if entry is None:
                break
            lane = self._lanes[entry.model]
            heapq.heappop(lane.heaps[entry.priority])
            lane.streams += 1
            self._forget_waiting(entry)
            self._running[entry.request_id] = entry.model
            self._turn = max(self._turn, entry.tag)
            started.append(entry.request_id)
        return started

    def remove(self, request_id: str) -> None:
        """Forget a request: finished, cancelled or expired. Unknown ids are ignored."""
        if entry := self._waiting.get(request_id):
            self._forget_waiting(entry)
        elif model := self._running.pop(request_id, None):
            lane = self._lanes[model]
            lane.streams -= 1
            self._drop_empty(model, lane)

    def expire(self, now: float) -> list[str]:
        """Take out the requests whose time in the queue is over."""
        expired: list[str] = []
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            _, _, entry = heapq.heappop(self._deadlines)
            self._forget_waiting(entry)
            expired.append(entry.request_id)
        return expired

    def next_deadline(self) -> float | None:
        """When `expire` has to be asked next."""
        while self._deadlines and self._is_gone(self._deadlines[0][2]):
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def positions(self, now: float) -> Iterator[tuple[str, int]]:
        """Every waiting request with its place in its model's queue; costs O(n log n)."""
        places: dict[str, int] = {}
        order = sorted(
            (entry for entry in self._waiting.values()), key=lambda e: (e.urgency(now), e.tag, e.arrived)
        )
        for entry in order:
            places[entry.model] = places.get(entry.model, 0) + 1
            yield entry.request_id, places[entry.model]

    def _next(self, now: float) -> _Waiting | None:
        """The most urgent request whose model has a free slot."""
        best: tuple[int, int, int] | None = None
        chosen: _Waiting | None = None
        for lane in self._lanes.values():
            if not lane.waiting or not self._has_room(lane):
                continue
            for heap in lane.heaps.values():
                while heap and self._is_gone(heap[0][2]):
                    heapq.heappop(heap)
                if heap:
                    tag, order, entry = heap[0]
                    rank = (entry.urgency(now), tag, order)
                    if best is None or rank < best:
                        best, chosen = rank, entry
        return chosen

    def _has_room(self, lane: _Lane) -> bool:
        return len(self._running) < self.limits.concurrent and lane.streams < self.limits.per_model

    def _is_gone(self, entry: _Waiting) -> bool:
        return self._waiting.get(entry.request_id) is not entry

    def _forget_waiting(self, entry: _Waiting) -> None:
        del self._waiting[entry.request_id]
        lane = self._lanes[entry.model]
        lane.waiting -= 1
        if self._tags.get(entry.conversation) == entry.tag:
            del self._tags[entry.conversation]
        self._drop_empty(entry.model, lane)

    def _drop_empty(self, model: str, lane: _Lane) -> None:
        """A model without requests leaves nothing behind, whatever its name was."""
        if not lane.streams and not lane.waiting:
            self._lanes.pop(model, None)
