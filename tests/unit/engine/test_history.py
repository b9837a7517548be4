"""Measured speeds, and what they predict."""

import asyncio
from pathlib import Path

import pytest

from laya_desktop.config.schema import Strategy
from laya_desktop.core.events import ModelStatus
from laya_desktop.core.types import ModelState, Timings, Usage
from laya_desktop.engine.history import DECISIONS, History, HistoryFile
from laya_desktop.engine.routing.strategies import Load, Option, choose, predicted_s

GB = 1 << 30


def _measured(model: str = "m", size: int = GB, decode: float = 20.0, times: int = 1) -> History:
    history = History()
    for _ in range(times):
        history.observe(
            model,
            size,
            Usage(prompt_tokens=120, completion_tokens=101, reused_tokens=20),
            Timings(prefill_ms=500, decode_ms=100 / decode * 1000),
        )
    return history


def _option(name: str = "m", state: ModelState = ModelState.WARM, **changes: object) -> Option:
    status = ModelStatus(name=name, backend="gguf", path="", state=state)
    return Option(name, status, priority=10, size=GB, slots=2, waiting=0, cached=0)._replace(**changes)


def test_speeds_come_from_finished_answers() -> None:
    found = _measured().expected("m", GB)
    assert (found.prefill, found.decode, found.completion) == pytest.approx((200, 20, 101))


def test_later_answers_count_more() -> None:
    history = _measured(decode=10, times=5)
    for _ in range(10):
        history.observe(
            "m", GB, Usage(prompt_tokens=0, completion_tokens=11), Timings(prefill_ms=0, decode_ms=250)
        )
    assert history.expected("m", GB).decode == pytest.approx(40, rel=0.1)


def test_few_tokens_and_no_time_say_nothing_about_a_speed() -> None:
    history = _measured()
    history.observe("m", GB, Usage(prompt_tokens=3, completion_tokens=2), Timings(prefill_ms=1, decode_ms=1))
    history.observe("m", GB, Usage(prompt_tokens=99, completion_tokens=9), Timings(prefill_ms=0, decode_ms=0))
    assert history.expected("m", GB).decode == pytest.approx(20)


def test_unknown_models_are_estimated_from_their_size_and_from_measured_ones() -> None:
    small, large = History().expected("s", GB), History().expected("l", 4 * GB)
    assert small.decode == pytest.approx(4 * large.decode)
    assert small.load_s < large.load_s
    assert _measured(decode=20).expected("other", 2 * GB).decode == pytest.approx(10)


def test_another_file_of_the_same_name_is_measured_anew() -> None:
    history = _measured(decode=1)
    history.loaded("m", GB, 99)
    assert history.expected("m", GB).load_s == 99
    assert history.expected("m", GB + 1).load_s < 99


def test_the_file_keeps_speeds_over_a_restart(tmp_path: Path) -> None:
    kept = HistoryFile(tmp_path / "history.json")
    kept.load()
    kept.history.loaded("m", GB, 7.5)
    asyncio.run(kept.save())
    again = HistoryFile(tmp_path / "history.json")
    again.load()
    assert again.history.expected("m", GB).load_s == 7.5
    assert not again.history.is_dirty


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"m": 5}',
        b"\xff\xfe",
        b'{"m": {"size_bytes": 1073741824, "load_s": "x"}}',
        b'{"m": {"size_bytes": 1073741824, "load_s": -3}}',
    ],
)
def test_a_broken_file_is_ignored(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "history.json"
    file.write_bytes(content)
    kept = HistoryFile(file)
    kept.load()
    assert kept.history.expected("m", GB) == History().expected("m", GB)


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    kept = HistoryFile(tmp_path / "none" / "history.json")
    kept.load()
    kept.history.loaded("m", GB, 7.5)
    asyncio.run(kept.save())


def test_decisions_are_bounded() -> None:
    history = History()
    assert history.decisions.maxlen == DECISIONS == 1000


# Strategies


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({}, {"state": ModelState.COLD}),
        ({"state": ModelState.LOADING}, {"state": ModelState.COLD}),
        ({}, {"waiting": 3}),
        ({"cached": 900}, {}),
        ({}, {"size": 4 * GB}),
    ],
)
def test_the_predicted_time_counts_everything(better: dict[str, object], worse: dict[str, object]) -> None:
    load = Load(tokens=1000, limit=None)
    history = History()
    quick, slow = _option("a", **better), _option("b", **worse)  # type: ignore[arg-type]
    if better.get("state") is ModelState.LOADING:
        status = ModelStatus(name="a", backend="gguf", path="", state=ModelState.LOADING, progress=0.5)
        quick = quick._replace(status=status)
    assert predicted_s(quick, load, history) < predicted_s(slow, load, history)
    assert choose(Strategy.MIN_LATENCY, [slow, quick], load, history)[0].name == "a"


def test_a_limit_shortens_the_answer() -> None:
    history = _measured(decode=10)
    assert predicted_s(_option(), Load(0, 10), history) == pytest.approx(1.0)
    assert predicted_s(_option(), Load(0, None), history) == pytest.approx(10.1)


def test_a_full_model_makes_the_next_one_wait() -> None:
    def busy(streams: int) -> Option:
        status = ModelStatus(name="m", backend="gguf", path="", state=ModelState.BUSY, streams=streams)
        return _option(status=status)

    times = [predicted_s(busy(streams), Load(100, None), History()) for streams in range(4)]
    assert times == sorted(set(times))


def test_the_other_strategies() -> None:
    history = History()
    load = Load(10, None)
    a, b = _option("a", priority=1, waiting=2), _option("b", priority=2, size=9 * GB)
    assert choose(Strategy.PRIORITY, [b, a], load, history)[0] is a
    assert choose(Strategy.LEAST_BUSY, [a, b], load, history)[0] is b
    assert choose(Strategy.QUALITY, [a, b], load, history)[0] is b
    turns = []
    for _ in range(4):
        chosen, scores = choose(Strategy.ROUND_ROBIN, [b, a], load, history)
        assert len(scores) == 2
        history.took_turn(chosen.name)
        turns.append(chosen.name)
    assert turns == ["a", "b", "a", "b"]
