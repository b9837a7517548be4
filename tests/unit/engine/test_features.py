"""What is read off a request before the rules look at it."""

import pytest

from laya_desktop.core.types import Caller, ChatRequest, Message, Role
from laya_desktop.engine.routing.features import Features, extract


def _features(*texts: str, role: Role = Role.USER, caller: Caller = Caller.API) -> Features:
    messages = tuple(Message(role, text) for text in texts)
    return extract(ChatRequest(id="r", messages=messages, caller=caller))


def test_the_last_user_turn_counts() -> None:
    messages = (
        Message(Role.SYSTEM, "You write Python."),
        Message(Role.USER, "hello"),
        Message(Role.ASSISTANT, "def f(): return 1"),
        Message(Role.USER, "Thanks!"),
    )
    features = extract(ChatRequest(id="r", messages=messages, caller=Caller.CHAT))
    assert (features.text, features.chars) == ("thanks!", 7)
    assert (features.messages, features.user_turns, features.has_system) == (4, 2, True)
    assert features.caller is Caller.CHAT
    assert features.task == "chat"
    assert not features.has_code


def test_no_user_turn_is_an_empty_light_prompt() -> None:
    features = _features("be brief", role=Role.SYSTEM)
    assert (features.text, features.chars, features.task, features.light) == ("", 0, "chat", True)


def test_features_are_immutable() -> None:
    with pytest.raises(AttributeError):
        _features("hi").chars = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "language", "script"),
    [
        ("What is this?", "en", "latin"),
        ("这是什么？", "zh", "han"),
        ("這是什麼？", "zh", "han"),
        ("これは何ですか", "ja", "kana"),
        ("이것은 무엇입니까", "ko", "hangul"),
        ("Что это?", "other", "cyrillic"),
        ("¿Qué es esto?", "other", "latin"),
        ("ما هذا؟", "other", "other"),
        ("用 Python 写一个函数", "zh", "han"),
        ("naïve – “quoted” text", "other", "latin"),
        ("", "en", "latin"),
    ],
)
def test_language_and_script(text: str, language: str, script: str) -> None:
    features = _features(text)
    assert (features.language, features.script) == (language, script)


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        ("```\nx\n```", "has_fence"),
        ("def f(x):\n    return [x, None]\nf(g());", "has_code"),
        ("Traceback (most recent call last):\n  File x", "has_trace"),
        ("is it?", "has_question"),
        ("是吗？", "has_question"),
        ("Think step by step.", "has_steps"),
        ("请逐步解释", "has_steps"),
        ("see https://example.org/a", "has_url"),
        (r"\frac{1}{2}", "has_maths"),
        ("∑ n", "has_maths"),
        ("3+4", "has_maths"),
        ("Choose: a) red b) blue", "has_choices"),
    ],
)
def test_flags(text: str, flag: str) -> None:
    assert getattr(_features(text), flag) is True
    assert getattr(_features("A quiet sentence, nothing else."), flag) is False


def test_counts() -> None:
    features = _features("one\ntwo 22 and 3.5\nthree")
    assert (features.lines, features.numbers) == (3, 3)


def test_tokens_are_estimated_over_all_messages() -> None:
    assert 900 < _features("word " * 400, "word " * 400).tokens < 1100
    assert 500 < _features("今天天气很好" * 150).tokens < 900
    assert _features().tokens == 0


def test_a_long_prompt_is_scanned_at_its_ends_only() -> None:
    features = _features("Write a poem. " + "a" * 200_000 + " def f(x): return x")
    assert features.chars > 200_000
    assert len(features.text) < 1100
    assert features.text.startswith("write a poem.")
    assert features.text.endswith("return x")


def test_long_or_doubtful_prompts_are_not_light() -> None:
    assert _features("hi, how are you?").light
    assert not _features("hi, how are you? " * 100).light
    assert not _features("Write a function that sorts a list in Java.").light
