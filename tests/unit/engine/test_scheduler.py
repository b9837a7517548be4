"""The scheduler's promises, on fixed and on generated histories."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.engine.scheduler import Limits, Priority, Scheduler


def _scheduler(concurrent: int = 2, per_model: int = 1, queue: int = 2, timeout: float = 1.0) -> Scheduler:
    return Scheduler(Limits(concurrent, per_model, queue, timeout))


def test_first_in_first_out_within_a_model() -> None:
    scheduler = _scheduler()
    for name in "abc":
        scheduler.submit(name, "m", 0.0)
    assert scheduler.start() == ["a"]
    assert scheduler.positions() == ["b", "c"]
    scheduler.remove("a")
    assert scheduler.start() == ["b"]


def test_a_full_model_does_not_hold_up_another() -> None:
    scheduler = _scheduler()
    scheduler.submit("a", "m", 0.0)
    scheduler.submit("b", "m", 0.0)
    scheduler.submit("c", "n", 0.0)
    assert scheduler.start() == ["a", "c"]


def test_a_full_queue_refuses_at_once() -> None:
    scheduler = _scheduler(queue=0)
    scheduler.submit("a", "m", 0.0)
    scheduler.start()
    with pytest.raises(LayaError) as caught:
        scheduler.submit("b", "m", 0.0)
    assert caught.value.info.code is ErrorCode.QUEUE_FULL


def test_waiting_time_is_bounded() -> None:
    scheduler = _scheduler()
    scheduler.submit("a", "m", 0.0)
    scheduler.submit("b", "m", 0.5)
    scheduler.start()
    assert scheduler.next_deadline() == 1.5
    assert scheduler.expire(1.4) == []
    assert scheduler.expire(1.5) == ["b"]
    assert scheduler.next_deadline() is None


class History(RuleBasedStateMachine):
    """Any order of arrivals, ends, cancels and expiries keeps the bounds, loses and doubles nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.scheduler = _scheduler(concurrent=3, per_model=2, queue=4, timeout=5.0)
        self.now = 0.0
        self.count = 0
        self.known: set[str] = set()
        self.running: dict[str, str] = {}
        self.models: dict[str, str] = {}

    @rule(model=st.sampled_from("xyz"))
    def submit(self, model: str) -> None:
        request_id = f"r{self.count}"
        self.count += 1
        try:
            self.scheduler.submit(request_id, model, self.now)
        except LayaError:
            assert self.scheduler.waiting >= 4
        else:
            self.known.add(request_id)
            self.models[request_id] = model
        self._start()

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        if self.known:
            request_id = data.draw(st.sampled_from(sorted(self.known)))
            self.scheduler.remove(request_id)
            self.known.discard(request_id)
            self.running.pop(request_id, None)
            self._start()

    @rule(step=st.floats(0.0, 6.0))
    def wait(self, step: float) -> None:
        self.now += step
        expired = self.scheduler.expire(self.now)
        assert not set(expired) & set(self.running)
        self.known -= set(expired)

    def _start(self) -> None:
        for request_id in self.scheduler.start():
            assert request_id in self.known
            assert request_id not in self.running
            self.running[request_id] = self.models[request_id]

    @invariant()
    def bounds_hold(self) -> None:
        per_model = [list(self.running.values()).count(model) for model in "xyz"]
        assert max(per_model) <= 2
        assert len(self.running) == self.scheduler.running <= 3
        assert self.scheduler.waiting <= 4

    @invariant()
    def nothing_is_lost(self) -> None:
        assert self.known == set(self.running) | set(self.scheduler.positions())

    @invariant()
    def nobody_waits_for_a_free_slot(self) -> None:
        for request_id in self.scheduler.positions():
            model = self.models[request_id]
            full = list(self.running.values()).count(model) >= 2
            assert full or len(self.running) >= 3


TestHistory = History.TestCase
TestHistory.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
