"""Conversations stay with their model, in the window and over HTTP; and the router never fails."""

import itertools
import logging

import msgspec
import pytest

from laya_desktop.config.schema import Condition, ModelEntry, RouterConfig, Rule
from laya_desktop.core.errors import ErrorCode, ErrorInfo
from laya_desktop.core.events import ModelStatus
from laya_desktop.core.types import Caller, ChatRequest, Decision, Message, ModelInfo, ModelState, Role
from laya_desktop.engine.history import History
from laya_desktop.engine.routing import features
from laya_desktop.engine.routing.conversations import Conversations
from laya_desktop.engine.routing.router import Router
from laya_desktop.engine.routing.situation import Situation

NOW = 1_000_000.0
GO = "Write a Go LRU cache with O(1) get/put using a doubly linked list and a mutex, with tests."
PARAMETERS = {"small": 500e6, "big": 8e9}


def _status(name: str, **changes: object) -> ModelStatus:
    info = ModelInfo(
        architecture="llama",
        size_bytes=int(PARAMETERS[name] * 0.6),
        parameters=int(PARAMETERS[name]),
        has_chat_template=True,
    )
    status = ModelStatus(name=name, backend="gguf", path="", state=ModelState.WARM, info=info)
    return msgspec.structs.replace(status, **changes)


class Chat:
    """A conversation: asks, and remembers who answered as the engine does."""

    _ids = itertools.count()

    def __init__(self, *rules: Rule, in_window: bool = True) -> None:
        entries = [ModelEntry(name=name, path=f"/{name}.gguf") for name in PARAMETERS]
        self.past = Conversations()
        self.router = Router(RouterConfig(rules=rules), entries, History(), self.past)
        self.models = {name: _status(name) for name in PARAMETERS}
        self.key = f"c{next(self._ids)}" if in_window else None
        self.messages: list[Message] = [Message(Role.SYSTEM, "You are helpful.")]

    def decide(self, text: str, model: str = "auto") -> Decision:
        self.messages.append(Message(Role.USER, text))
        request = ChatRequest(
            id="r",
            model=model,
            messages=tuple(self.messages),
            caller=Caller.CHAT if self.key else Caller.API,
            conversation_id=self.key,
        )
        decision, _ = self.router.decide(request, Situation(self.models, NOW))
        self.past.remember(request, decision.model, 100)
        self.messages.append(Message(Role.ASSISTANT, "Here it is."))
        return decision

    def ask(self, text: str, model: str = "auto") -> str:
        return self.decide(text, model).model


@pytest.fixture(params=[True, False], ids=["window", "http"])
def chat(request: pytest.FixtureRequest) -> Chat:
    return Chat(in_window=request.param)


def test_short_follow_ups_stay(chat: Chat) -> None:
    assert chat.ask(GO) == "big"
    for text in ("commit it", "thanks", "ok", "now translate this to French: bonjour", "谢谢"):
        decision = chat.decide(text)
        assert (decision.model, decision.rule) == ("big", "conversation")


def test_light_talk_stays_small_until_a_clear_new_task(chat: Chat) -> None:
    assert chat.ask("hi, how are you?") == "small"
    assert chat.ask("haha nice") == "small"
    decision = chat.decide("Prove that the square root of 2 is irrational.")
    assert decision.model == "big"
    assert "small answered before" in decision.reason
    assert chat.ask("thanks") == "big"


def test_a_model_picked_by_hand_stays_picked(chat: Chat) -> None:
    assert chat.ask(GO) == "big"
    assert chat.ask("shorter please", model="small") == "small"
    assert chat.ask("thanks") == "small"


@pytest.mark.parametrize("gone", [True, False])
def test_without_its_model_a_turn_is_routed_anew(chat: Chat, gone: bool) -> None:
    assert chat.ask("hi, how are you?") == "small"
    broken = ErrorInfo(code=ErrorCode.MODEL_FILE_MISSING, message="gone")
    if gone:
        del chat.models["small"]
    else:
        chat.models["small"] = _status("small", state=ModelState.COLD, error=broken)
    decision = chat.decide("thanks")
    assert decision.model == "big"
    assert "small answered before" in decision.reason


def test_a_history_that_was_never_seen_is_considered() -> None:
    chat = Chat(in_window=False)
    chat.messages += [Message(Role.USER, GO), Message(Role.ASSISTANT, "package lru")]
    assert chat.ask("thanks") == "big"
    light = Chat(in_window=False)
    light.messages += [Message(Role.USER, "hi, how are you?"), Message(Role.ASSISTANT, "fine")]
    assert light.ask("thanks") == "small"


def test_rules_about_words_win_over_the_conversation_and_others_do_not() -> None:
    size = Rule(name="short", when=Condition(max_chars=20), use="small")
    words = Rule(name="urgent", when=Condition(keywords_any=("urgent",)), use="small")
    chat = Chat(words, size)
    assert chat.ask(GO) == "big"
    assert chat.ask("commit it") == "big"
    assert chat.decide("urgent: why?").rule == "urgent"


def test_conversations_do_not_mix() -> None:
    chat = Chat()
    assert chat.ask(GO) == "big"
    other = ChatRequest(
        id="r",
        messages=(Message(Role.USER, "hello"), Message(Role.ASSISTANT, "hi"), Message(Role.USER, "thanks")),
        conversation_id="another",
    )
    assert chat.past.previous(other) is None


def test_the_memory_of_conversations_is_bounded() -> None:
    past = Conversations()
    for number in range(2500):
        past.remember(
            ChatRequest(id="r", messages=(Message(Role.USER, "x"),), conversation_id=str(number)), "m", 1
        )
    twice = (Message(Role.USER, "x"), Message(Role.USER, "y"))
    assert past.previous(ChatRequest(id="r", messages=twice, conversation_id="0")) is None
    assert past.previous(ChatRequest(id="r", messages=twice, conversation_id="2499")) == ("m", 1)


# Whatever comes in


@pytest.mark.parametrize(
    "messages",
    [
        (),
        (Message(Role.SYSTEM, "be brief"),),
        (Message(Role.USER, ""),),
        (Message(Role.USER, "\ud800 \x00"),),
        (Message(Role.USER, "🎉🎉🎉"),),
        (Message(Role.USER, "Как дела? Напиши стихотворение."),),
        (Message(Role.USER, "hi"), Message(Role.ASSISTANT, "calls"), Message(Role.TOOL, "42")),
        (Message(Role.ASSISTANT, "only me"),),
        (Message(Role.USER, "word " * 40_000),),
    ],
)
def test_every_request_gets_a_registered_model(messages: tuple[Message, ...]) -> None:
    chat = Chat()
    decision, _ = chat.router.decide(ChatRequest(id="r", messages=messages), Situation(chat.models, NOW))
    assert decision.model in PARAMETERS
    assert decision.reason


def test_a_failing_router_means_the_default_model_and_a_log_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(request: ChatRequest) -> None:
        raise ValueError("no")

    chat = Chat()
    monkeypatch.setattr(features, "extract", fail)
    with caplog.at_level(logging.ERROR):
        decision = chat.decide("hello")
        assert (decision.model, decision.rule) == ("small", "default")
        assert chat.decide("hello", model="big").rule == "named"
    assert "the router failed" in caplog.text
    request = ChatRequest(id="r", messages=(Message(Role.USER, "hello"),))
    assert chat.router.explain(request, Situation(chat.models, NOW)).decision.rule == "default"


def test_a_slow_classifier_means_the_default_model(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = Chat()
    clock = itertools.count()
    monkeypatch.setattr("laya_desktop.engine.routing.router.time.perf_counter", lambda: next(clock))
    assert chat.decide(GO).rule == "default"


def test_a_prompt_that_fits_one_context_only_goes_there() -> None:
    entries = [
        ModelEntry(name="small", path="/s.gguf", context_tokens=8192),
        ModelEntry(name="big", path="/b.gguf"),
    ]
    router = Router(RouterConfig(), entries, History(), Conversations(), 4096)
    models = {name: _status(name) for name in PARAMETERS}
    request = ChatRequest(id="r", messages=(Message(Role.USER, "word " * 4000),))
    decision, _ = router.decide(request, Situation(models, NOW))
    assert decision.model == "small"
    assert "too small" in decision.candidates[1].excluded
    longer = ChatRequest(id="r", messages=(Message(Role.USER, "word " * 9000),))
    assert router.decide(longer, Situation(models, NOW))[0].model == "small", (
        "its error names the largest context"
    )


def test_an_explanation_tells_everything() -> None:
    off = Rule(name="off", enabled=False, use="small")
    code = Rule(name="code", when=Condition(task="code"), use="big")
    rest = Rule(name="rest", use={"models": ["small", "big"], "strategy": "quality"})
    chat = Chat(off, code, rest)
    request = ChatRequest(id="r", messages=(Message(Role.USER, "hello there"),))
    found = chat.router.explain(request, Situation(chat.models, NOW))
    assert [(rule.rule, rule.outcome) for rule in found.rules] == [
        ("off", "off"),
        ("code", "no match"),
        ("rest", "decides"),
    ]
    assert found.decision.model == "big"
    assert found.strategy == "quality"
    assert all(candidate.predicted_s for candidate in found.decision.candidates)
    assert found.features["task"] == "chat"
    assert "text" not in found.features
    data = msgspec.json.encode(found)
    assert msgspec.json.decode(data, type=type(found)) == found
