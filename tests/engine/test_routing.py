"""Routing in a running engine: decisions without a run, explanations, measured speeds, conversations."""

import json
import threading
import time

import pytest

from laya_desktop.core.errors import LayaError
from laya_desktop.core.events import Cancelled, Delta, Finished, Routed
from laya_desktop.core.types import Caller, ChatRequest, Message, Role
from laya_desktop.engine.handle import EngineHandle

from .collect import DEADLINE_S, Answer, request
from .conftest import CountedWorker, StartEngine


def _inspected(handle: EngineHandle) -> EngineHandle:
    """When the sizes of all models are known."""
    deadline = time.monotonic() + DEADLINE_S
    while any(model.info is None for model in handle.models):
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)
    return handle


def _turn(*texts: str, conversation: str | None = "c", model: str = "auto") -> ChatRequest:
    roles = [Role.USER, Role.ASSISTANT]
    return ChatRequest(
        id=f"turn-{time.monotonic_ns()}",
        model=model,
        messages=tuple(Message(roles[n % 2], text) for n, text in enumerate(texts)),
        caller=Caller.CHAT,
        conversation_id=conversation,
    )


def _answered_by(handle: EngineHandle, what: ChatRequest) -> str:
    answer = Answer(handle, what)
    assert isinstance(answer.end(), Finished)
    routed = answer.of(Routed)[-1]
    assert isinstance(routed, Routed)
    return routed.decision.model


def test_a_decision_runs_nothing(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {}, "longer": {}})
    decision = handle.route(request()).result(DEADLINE_S)
    assert decision.model in ("m", "longer")
    assert decision.elapsed_us > 0
    assert CountedWorker.started == 0
    with pytest.raises(LayaError):
        handle.route(request("nobody")).result(DEADLINE_S)


def test_an_explanation_agrees_with_the_decision(start_engine: StartEngine) -> None:
    handle = start_engine(
        {"m": {}, "longer": {}},
        "router:\n  rules:\n"
        "    - {name: cold, when: {not: {warm: longer}}, use: longer}\n"
        "    - {name: rest, use: [m, longer]}\n",
    )
    found = handle.explain(request()).result(DEADLINE_S)
    assert [rule.outcome for rule in found.rules] == ["decides", "not reached"]
    assert found.decision.model == handle.route(request()).result(DEADLINE_S).model == "longer"
    handle.load("longer").result(DEADLINE_S)
    found = handle.explain(request()).result(DEADLINE_S)
    assert [rule.outcome for rule in found.rules] == ["no match", "decides"]
    assert all(candidate.predicted_s is not None for candidate in found.decision.candidates)


def test_a_follow_up_stays_with_the_model_that_answered(start_engine: StartEngine) -> None:
    handle = _inspected(start_engine({"m": {}, "much-longer": {}}))
    first = "Prove that the square root of 2 is irrational."
    assert _answered_by(handle, _turn(first)) == "much-longer"
    assert _answered_by(handle, _turn(first, "proof", "thanks")) == "much-longer"
    assert _answered_by(handle, _turn(first, "proof", "thanks", "ok", "again", model="m")) == "m"
    assert _answered_by(handle, _turn(first, "proof", "thanks", "ok", "again", "a", "thanks")) == "m"


def test_a_stopped_answer_holds_the_conversation_too(start_engine: StartEngine) -> None:
    handle = _inspected(start_engine({"m": {}, "much-longer": {"endless": True, "pace_s": 0.001}}))
    first = "Prove that the square root of 2 is irrational."
    answer = Answer(handle, _turn(first))
    answer.wait_for(Delta)
    handle.cancel(answer.request.id)
    assert isinstance(answer.end(), Cancelled)
    found = handle.explain(_turn(first, "proof", "shorter")).result(DEADLINE_S)
    assert (found.decision.model, found.previous_model) == ("much-longer", "much-longer")


def test_measured_speeds_outlive_the_engine(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {"reply": "one two three four five six", "pace_s": 0.01}})
    before = handle.explain(request(max_tokens=5)).result(DEADLINE_S).decision.candidates[0].predicted_s
    assert isinstance(Answer(handle, request()).end(), Finished)
    handle.stop()
    kept = json.loads(handle._paths.history.read_bytes())["m"]
    assert kept["load_s"] > 0
    assert kept["decode"] > 0
    assert kept["completion"] == 6
    handle.start()
    after = handle.explain(request(max_tokens=5)).result(DEADLINE_S).decision.candidates[0].predicted_s
    assert before is not None
    assert after is not None
    assert after != before


def test_a_broken_history_is_ignored(start_engine: StartEngine) -> None:
    handle = start_engine({"m": {}})
    handle.stop()
    handle._paths.history.write_bytes(b"\x00nonsense")
    handle.start()
    assert isinstance(Answer(handle, request()).end(), Finished)


def test_new_rules_apply_without_touching_running_streams(start_engine: StartEngine) -> None:
    handle = _inspected(start_engine({"m": {"endless": True, "pace_s": 0.001}, "longer": {}}))
    running = Answer(handle, request("m"))
    running.wait_for(Delta)
    handle.set_config("router.strategy", "quality").result(DEADLINE_S)
    assert handle.route(request()).result(DEADLINE_S).model == "longer"
    assert not running.terminals()
    handle.cancel(running.request.id)
    assert isinstance(running.end(), Cancelled)


def test_round_robin_takes_turns(start_engine: StartEngine) -> None:
    handle = start_engine({"a": {}, "b": {}}, "router: {strategy: round_robin}")
    models = [_answered_by(handle, request(text=f"hello {n}")) for n in range(4)]
    assert models[:2] == models[2:]
    assert set(models) == {"a", "b"}
