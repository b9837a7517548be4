"""The scheduler's promises, on fixed and on generated histories."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.engine.scheduler import AGING_S, Limits, Priority, Scheduler


def _scheduler(concurrent: int = 2, per_model: int = 1, queue: int = 2, timeout: float = 1.0) -> Scheduler:
    return Scheduler(Limits(concurrent, per_model, queue, timeout))


def test_first_in_first_out_within_a_model() -> None:
    scheduler = _scheduler()
    for name in "abc":
        scheduler.submit(name, "m", 0.0)
    assert scheduler.start(0.0) == ["a"]
    assert list(scheduler.positions(0.0)) == [("b", 1), ("c", 2)]
    scheduler.remove("a")
    assert scheduler.start(0.0) == ["b"]


def test_a_full_model_does_not_hold_up_another() -> None:
    scheduler = _scheduler()
    scheduler.submit("a", "m", 0.0)
    scheduler.submit("b", "m", 0.0)
    scheduler.submit("c", "n", 0.0)
    assert scheduler.start(0.0) == ["a", "c"]


def test_a_full_queue_refuses_at_once() -> None:
    scheduler = _scheduler(queue=0)
    scheduler.submit("a", "m", 0.0)
    scheduler.start(0.0)
    with pytest.raises(LayaError) as caught:
        scheduler.submit("b", "m", 0.0)
    assert caught.value.info.code is ErrorCode.QUEUE_FULL


def test_waiting_time_is_bounded() -> None:
    scheduler = _scheduler()
    scheduler.submit("a", "m", 0.0)
    scheduler.submit("b", "m", 0.5)
    scheduler.start(0.5)
    assert scheduler.next_deadline() == 1.5
    assert scheduler.expire(1.4) == []
    assert scheduler.expire(1.5) == ["b"]
    assert scheduler.next_deadline() is None


def _order(scheduler: Scheduler, now: float = 0.0) -> list[str]:
    """Let the requests run one after the other."""
    order: list[str] = []
    while started := scheduler.start(now):
        order += started
        for request_id in started:
            scheduler.remove(request_id)
    return order


def test_who_types_goes_before_programs_and_background_work() -> None:
    scheduler = _scheduler(concurrent=1, queue=9, timeout=99)
    scheduler.submit("background", "m", 0.0, priority=Priority.BACKGROUND)
    scheduler.submit("api", "m", 0.0, priority=Priority.API)
    scheduler.submit("typed", "m", 0.0, priority=Priority.INTERACTIVE)
    assert _order(scheduler) == ["typed", "api", "background"]


def test_who_waited_long_enough_is_not_overtaken_any_more() -> None:
    scheduler = _scheduler(concurrent=1, queue=99, timeout=999)
    scheduler.submit("background", "m", 0.0, priority=Priority.BACKGROUND)
    later = 2 * AGING_S
    for n in range(3):
        scheduler.submit(f"typed{n}", "m", later, priority=Priority.INTERACTIVE)
    assert _order(scheduler, later)[0] == "background"


def test_conversations_take_turns() -> None:
    scheduler = _scheduler(concurrent=1, queue=9, timeout=99)
    for n in range(3):
        scheduler.submit(f"a{n}", "m", 0.0, conversation="a")
    scheduler.submit("b0", "m", 0.0, conversation="b")
    scheduler.submit("lone", "m", 0.0)
    assert _order(scheduler) == ["a0", "b0", "lone", "a1", "a2"]


def test_a_busy_model_has_a_queue_of_its_own() -> None:
    scheduler = _scheduler(concurrent=9, per_model=1, queue=1)
    for request_id in ("a", "b"):
        scheduler.submit(request_id, "m", 0.0)
        scheduler.start(0.0)
    with pytest.raises(LayaError):
        scheduler.submit("c", "m", 0.0)
    scheduler.submit("d", "n", 0.0)
    assert scheduler.start(0.0) == ["d"]


class History(RuleBasedStateMachine):
    """Any order of arrivals, ends, cancels and expiries keeps the bounds, loses and doubles nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.scheduler = _scheduler(concurrent=3, per_model=2, queue=4, timeout=50.0)
        self.now = 0.0
        self.count = 0
        self.known: set[str] = set()
        self.running: dict[str, str] = {}
        self.models: dict[str, str] = {}

    @rule(
        model=st.sampled_from("xyz"),
        priority=st.sampled_from(Priority),
        conversation=st.sampled_from([None, "a", "b"]),
    )
    def submit(self, model: str, priority: Priority, conversation: str | None) -> None:
        request_id = f"r{self.count}"
        self.count += 1
        try:
            self.scheduler.submit(request_id, model, self.now, priority=priority, conversation=conversation)
        except LayaError:
            assert sum(self.models[other] == model for other in self._waiting()) >= 4
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

    @rule(step=st.floats(0.0, 60.0))
    def wait(self, step: float) -> None:
        self.now += step
        expired = self.scheduler.expire(self.now)
        assert not set(expired) & set(self.running)
        self.known -= set(expired)

    def _start(self) -> None:
        for request_id in self.scheduler.start(self.now):
            assert request_id in self.known
            assert request_id not in self.running
            self.running[request_id] = self.models[request_id]

    def _waiting(self) -> list[str]:
        return [request_id for request_id, _ in self.scheduler.positions(self.now)]

    @invariant()
    def bounds_hold(self) -> None:
        for model in "xyz":
            assert list(self.running.values()).count(model) <= 2
            assert sum(self.models[request_id] == model for request_id in self._waiting()) <= 4
        assert len(self.running) == self.scheduler.running <= 3

    @invariant()
    def nothing_is_lost(self) -> None:
        waiting = self._waiting()
        assert self.scheduler.waiting == len(waiting)
        assert self.known == {*self.running, *waiting}

    @invariant()
    def nobody_waits_for_a_free_slot(self) -> None:
        for request_id in self._waiting():
            full = list(self.running.values()).count(self.models[request_id]) >= 2
            assert full or len(self.running) >= 3

    @invariant()
    def nothing_is_remembered_of_those_who_left(self) -> None:
        if not self.known:
            assert not self.scheduler._lanes
            assert not self.scheduler._tags


TestHistory = History.TestCase
TestHistory.settings = settings(max_examples=200, stateful_step_count=50, deadline=None)
