"""Prompts that are made beside the streams: what is refused by its size, and who gets what when."""

import random
import sys
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from laya_desktop.backends.common.chat_template import ChatTemplate, SpecialToken
from laya_desktop.backends.common.prompts import PromptEncoder, TokenBound
from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.core.types import Message, Role, Sampling
from tests.unit.backends.chars import CharTokenizer

PIECES = [bytes([byte]) for byte in range(256)] + [b"<<", b"the ", b" " * 8]
TEMPLATE = "{% for m in messages %}{{ m.content | trim }}{% endfor %}"
WAIT_S = 10.0
CONTEXT = 100

Make = Callable[[ChatTemplate], PromptEncoder]


class CountedTemplate(ChatTemplate):
    """Knows how often it was asked, and does not answer before `gate` is open."""

    def __init__(self, source: str | None = TEMPLATE) -> None:
        super().__init__(source, CharTokenizer())
        self.gate = threading.Event()
        self.gate.set()
        self.asked = 0

    def encode(self, messages: Sequence[Message], enough: int = sys.maxsize) -> list[int]:
        self.asked += 1
        assert self.gate.wait(WAIT_S)
        return super().encode(messages, enough)


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[PromptEncoder] = []

    def make(template: ChatTemplate) -> PromptEncoder:
        made.append(PromptEncoder(template, lambda: PIECES, CONTEXT))
        return made[-1]

    yield make
    for encoder in made:
        encoder.close()


def user(text: str) -> Message:
    return Message(Role.USER, text)


def error_of(encoder: PromptEncoder, *messages: Message) -> LayaError:
    encoder.start("r", messages, Sampling())
    [encoding] = encoder.ready(WAIT_S)
    with pytest.raises(LayaError) as caught:
        encoding.prompt.result()
    return caught.value


@pytest.mark.parametrize(
    ("messages", "least"),
    [
        ([user("<" * 1000)], 500),
        ([user("<" * 600), Message(Role.TOOL, "<" * 400)], 500),
        ([user("a" * 150)], 150),
        ([user("a" * 100)], 100),
        ([user("the " * 150)], 150),
        ([user("x" + " " * 4000 + "x")], 501),
        ([user("x")] * 101, 101),
        ([user("")] * 101, 101),
    ],
)
def test_what_cannot_fit_is_refused_unseen(make: Make, messages: list[Message], least: int) -> None:
    template = CountedTemplate()
    info = error_of(make(template), *messages).info
    assert template.asked == 0
    assert info.code is ErrorCode.CONTEXT_LENGTH_EXCEEDED
    assert info.message == (
        f"The prompt has at least {least} tokens and the context holds {CONTEXT}, the answer included."
    )
    assert info.param == "messages"


@pytest.mark.parametrize(
    "message",
    [
        user("a" * 99),
        user("the " * 99),
        user("名" * 30),
        user(" " * 100_000 + "x"),  # trimmed
        Message(Role.ASSISTANT, "<think>" + "x" * 100_000 + "</think>y"),  # many templates drop it
    ],
)
def test_what_could_fit_is_encoded(make: Make, message: Message) -> None:
    template = CountedTemplate()
    encoder = make(template)
    encoder.start("r", [message], Sampling())
    assert encoder.ready(WAIT_S)
    assert template.asked == 1


def test_too_long_by_count(make: Make) -> None:
    info = error_of(make(CountedTemplate("{{ messages[0].content * 2 }}")), user("a" * 60)).info
    assert "has 120 tokens" in info.message


def test_much_too_long_is_not_counted_to_the_end(make: Make) -> None:
    tokens = CharTokenizer(SpecialToken(0x110000, "<|end|>"))
    template = ChatTemplate(
        "{% for m in messages %}{{ m.content }}" + "x" * 50 + "<|end|>{% endfor %}", tokens
    )
    info = error_of(make(template), *[user("a")] * 50).info
    assert "has at least 208 tokens" in info.message  # four of fifty turns


def test_a_missing_template_is_told_before_the_size(make: Make) -> None:
    assert error_of(make(ChatTemplate(None, CharTokenizer())), user("a" * 1000)).info.code is (
        ErrorCode.CHAT_TEMPLATE_ERROR
    )


def test_the_bound_is_never_more_than_the_tokens() -> None:
    chance = random.Random(1)
    for _ in range(200):
        pieces = [bytes(chance.choices(b"ab< \xe5", k=chance.randint(1, 9))) for _ in range(8)]
        text = chance.choices(pieces, k=50)
        assert TokenBound(pieces).at_least(b"".join(text)) <= 50


def test_nobody_waits_for_a_prompt_that_takes_long(make: Make) -> None:
    template = CountedTemplate()
    encoder = make(template)
    template.gate.clear()
    encoder.start("first", [user("a")], Sampling())
    encoder.start("second", [user("b")], Sampling())
    assert encoder.ready(0) == []
    assert encoder.has_work
    template.gate.set()
    done = encoder.ready(WAIT_S)
    while encoder.has_work:
        done += encoder.ready(WAIT_S)
    assert [(each.id, each.prompt.result()) for each in done] == [("first", [97]), ("second", [98])]


def test_a_prompt_can_be_cancelled_while_it_is_made_and_while_it_waits(make: Make) -> None:
    template = CountedTemplate()
    encoder = make(template)
    template.gate.clear()
    for name in ("made", "waiting", "kept"):
        encoder.start(name, [user("a")], Sampling())
    assert encoder.cancel("made")
    assert encoder.cancel("waiting")
    assert not encoder.cancel("waiting")
    template.gate.set()
    assert [each.id for each in encoder.ready(WAIT_S)] == ["kept"]
    assert not encoder.has_work
    assert template.asked == 2
