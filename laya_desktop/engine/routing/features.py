"""What the router looks at in a request. Pure; of a long prompt only head and tail are scanned."""

import re
from collections.abc import Sequence

import msgspec

from laya_desktop.core.types import Caller, ChatRequest, Message, Role
from laya_desktop.engine.routing import intent, marks
from laya_desktop.engine.routing.scan import Scan, scan

LIGHT_CHARS = 1200
"""A prompt longer than this is never light, whatever it asks for."""

_KANA = re.compile("[\u3040-\u30ff]")
_HANGUL = re.compile("[\uac00-\ud7af]")
_SAMPLE_CHARS = 256
_TOKENS_PER_CHAR = 0.25
_TOKENS_PER_EXTRA_BYTE = 0.22


class Features(msgspec.Struct, frozen=True, gc=False):
    """Of the last user turn, unless said otherwise.

    `text` is its head and tail in lower case; `chars` its whole length. `tokens` estimates all messages.
    `task` is one of `intent.TASKS`, `confidence` its probability. `light` says that the smallest model
    will do: surely chat, and short. `language` is "en", "zh", "ja", "ko" or "other" as far as it can be
    told, `script` "latin", "han", "kana", "hangul", "cyrillic" or "other". `numbers`, `lines` and the flags
    are about `text`. `messages` counts all turns, `user_turns` those of the user.
    """

    text: str
    chars: int
    tokens: int
    task: str
    confidence: float
    light: bool
    language: str
    script: str
    has_code: bool
    has_fence: bool
    has_trace: bool
    has_question: bool
    has_steps: bool
    has_url: bool
    has_maths: bool
    has_choices: bool
    numbers: int
    lines: int
    messages: int
    user_turns: int
    has_system: bool
    caller: Caller


def extract(request: ChatRequest) -> Features:
    """Features of a request; of an empty prompt if there is no user turn. Never raises."""
    messages = request.messages
    prompt, user_turns, has_system = _turns(messages)
    found = scan(prompt)
    asked = intent.model().classify(found)
    script = _script(found)
    # A request may say itself what it asks for.
    task, confidence = (request.task, 1.0) if request.task else (asked.task, asked.confidence)
    sure = task == "chat" and confidence >= intent.CONFIDENT
    return Features(
        text=found.text,
        chars=found.chars,
        tokens=_estimate(messages),
        task=task,
        confidence=confidence,
        light=sure and found.chars <= LIGHT_CHARS,
        language=_LANGUAGES.get(script) or ("en" if found.text.isascii() else "other"),
        script=script,
        has_code=found.has_code,
        has_fence=found.fence,
        has_trace=found.trace,
        has_question=found.question,
        has_steps=found.steps,
        has_url=found.marks & marks.URL != 0,
        has_maths=found.marks & (marks.MATHS | marks.SUMS) != 0,
        has_choices=found.marks & marks.CHOICES != 0,
        numbers=found.numbers,
        lines=found.newlines + 1,
        messages=len(messages),
        user_turns=user_turns,
        has_system=has_system,
        caller=request.caller,
    )


_LANGUAGES = {"han": "zh", "kana": "ja", "hangul": "ko", "cyrillic": "other", "other": "other"}


def _turns(messages: Sequence[Message]) -> tuple[str, int, bool]:
    """The last user turn, the number of user turns, and whether there is a system prompt."""
    prompt, turns, system = "", 0, False
    for message in messages:
        if message.role is Role.USER:
            prompt = message.content
            turns += 1
        elif message.role is Role.SYSTEM:
            system = True
    return prompt, turns, system


def _estimate(messages: Sequence[Message]) -> int:
    """Tokens of all messages: a quarter of a token for an ASCII character, more for what takes more bytes."""
    tokens = 0.0
    for message in messages:
        content = message.content
        if content.isascii():
            tokens += len(content) * _TOKENS_PER_CHAR
        else:
            sample = content[:_SAMPLE_CHARS]
            extra = len(sample.encode("utf-8", "replace")) / len(sample) - 1
            tokens += len(content) * (_TOKENS_PER_CHAR + _TOKENS_PER_EXTRA_BYTE * extra)
    return int(tokens) + 4 * len(messages)


def _script(found: Scan) -> str:
    """The script of the first character outside ASCII that belongs to one."""
    if found.text.isascii():
        return "latin"
    if found.dense:
        # Japanese mixes kana with Chinese characters, so that a single kana decides.
        if _KANA.search(found.dense):
            return "kana"
        return "hangul" if _HANGUL.search(found.dense) else "han"
    for char in found.text[:_SAMPLE_CHARS]:
        if "\u0400" <= char <= "\u052f":
            return "cyrillic"
        if char.isalpha() and char >= "\u0590":
            return "other"
    return "latin"
