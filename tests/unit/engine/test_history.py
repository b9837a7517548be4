"""Measured speeds, and what they predict."""

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import pytest

from laya_desktop.config.schema import Strategy
from laya_desktop.core.events import ModelStatus
from laya_desktop.core.types import ModelState, Timings, Usage
from laya_desktop.engine.history import DECISIONS, History, HistoryFile
from laya_desktop.engine.routing.cards import Card
from laya_desktop.engine.routing.conversations import Answered
from laya_desktop.engine.routing.situation import Situation
from laya_desktop.engine.routing.strategies import Work, choose, predicted_s

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


def _card(name: str = "m", **changes: Any) -> Card:
    card = Card(name, 10, GB, 2e9, 4096, 2, True, False, False)
    return dataclasses.replace(card, **changes)


def _work(
    history: History,
    tokens: int = 10,
    limit: int | None = None,
    previous: Answered | None = None,
    waiting: dict[str, int] | None = None,
    **statuses: dict[str, object],
) -> Work:
    """Models are warm, unless said otherwise."""
    models = {
        name: msgspec.structs.replace(
            ModelStatus(name=name, backend="gguf", path="", state=ModelState.WARM), **changes
        )
        for name, changes in ({"a": {}, "b": {}, "m": {}} | statuses).items()
    }
    queues = waiting or {}
    return Work(tokens, limit, previous, Situation(models, 0, lambda name: queues.get(name, 0)), history)


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


COLD: dict[str, object] = {"state": ModelState.COLD}
HALF_LOADED: dict[str, object] = {"state": ModelState.LOADING, "progress": 0.5}


@pytest.mark.parametrize(
    "situation",
    [
        {"b": COLD},
        {"a": HALF_LOADED, "b": COLD},
        {"waiting": {"b": 3}},
        {"previous": Answered("a", 900)},
        {"b": {"state": ModelState.BUSY, "streams": 1}},
    ],
)
def test_the_predicted_time_counts_everything(situation: dict[str, Any]) -> None:
    work = _work(History(), tokens=1000, **situation)
    assert predicted_s(_card("a"), work) < predicted_s(_card("b"), work)
    assert choose(Strategy.MIN_LATENCY, [_card("b"), _card("a")], work)[0].name == "a"


def test_a_smaller_model_is_expected_to_be_faster() -> None:
    work = _work(History())
    assert predicted_s(_card("a"), work) < predicted_s(_card("b", size=4 * GB), work)


def test_a_limit_shortens_the_answer() -> None:
    history = _measured(decode=10)
    assert predicted_s(_card(), _work(history, 0, 10)) == pytest.approx(1.0)
    assert predicted_s(_card(), _work(history, 0)) == pytest.approx(10.1)


def test_a_full_model_makes_the_next_one_wait() -> None:
    times = [
        predicted_s(_card(), _work(History(), m={"state": ModelState.BUSY, "streams": streams}))
        for streams in range(4)
    ]
    assert times == sorted(set(times))


def test_the_other_strategies() -> None:
    history = History()
    work = _work(history, waiting={"a": 2})
    a, b = _card("a", priority=1), _card("b", priority=2, size=9 * GB)
    assert choose(Strategy.PRIORITY, [b, a], work)[0] is a
    assert choose(Strategy.LEAST_BUSY, [a, b], work)[0] is b
    assert choose(Strategy.QUALITY, [a, b], work)[0] is b
    turns = []
    for _ in range(4):
        chosen, scores = choose(Strategy.ROUND_ROBIN, [b, a], work)
        assert set(scores) == {"a", "b"}
        history.took_turn(chosen.name)
        turns.append(chosen.name)
    assert turns == ["a", "b", "a", "b"]
