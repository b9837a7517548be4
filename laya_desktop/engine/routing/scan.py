"""One pass over a prompt, bounded: what costs anything looks at its head and tail only.

Words of scripts with blanks become bytes with every digit folded to 0 ("350 km" is ``000 km``); scripts
without (Chinese, Japanese, Korean) become text of which the reader takes pairs of characters.
"""

import re
from typing import NamedTuple

from laya_desktop.engine.routing import marks

HEAD_CHARS = 512
TAIL_CHARS = 256
_DENSE_HEAD, _DENSE_TAIL = 80, 48
_WORDS_HEAD, _WORDS_TAIL = 64, 32

_DENSE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_TRACES = (
    b"traceback (",
    b"exception in ",
    b"panicked at",
    b"stack trace",
    b"segmentation fault",
    b"\n\tat ",
)
_STEPS = (b"step by step", b"step-by-step")
_STEPS_DENSE = ("一步一步", "逐步", "一步步")
_CODE_WORDS = frozenset(
    b"def elif const var func fn void int printf println cout struct null lambda async await console self str"
    b" len bool return import function foreach enum endif varchar groupby".split()
)
_CODE_SIGNS = 3


def _table(high: bool) -> bytes:
    """Byte to byte: digits to 0, letters and what is part of a word stay, the rest is a blank."""
    stays = set(b"abcdefghijklmnopqrstuvwxyz+#^")
    return bytes(
        48 if 48 <= code < 58 else code if code in stays or (high and code >= 128) else 32
        for code in range(256)
    )


_WITH_HIGH, _WITHOUT_HIGH = _table(True), _table(False)


class Scan(NamedTuple):
    """`text` is head and tail in lower case, `chars` the whole prompt's length in characters; `words` and
    `dense` are cut to their ends. `marks` are the bits of `marks.find`, `code_signs` counts different marks
    and words of code; `newlines` and `numbers` count within the text. `asks_last` says that it ends in a
    question mark."""

    text: str
    chars: int
    words: list[bytes]
    dense: str
    marks: int
    code_signs: int
    newlines: int
    numbers: int
    fence: bool
    trace: bool
    steps: bool
    question: bool
    asks_last: bool
    quote: bool
    colon: bool

    @property
    def has_code(self) -> bool:
        return self.fence or self.trace or self.code_signs >= _CODE_SIGNS


def scan(prompt: str) -> Scan:
    """Look at a prompt once. Costs the same for any length. Never raises."""
    cut = prompt
    if len(prompt) > HEAD_CHARS + TAIL_CHARS:
        cut = f"{prompt[:HEAD_CHARS]}\n{prompt[-TAIL_CHARS:]}"
    text = cut.casefold()
    raw = text.encode("utf-8", "replace")
    dense = "" if len(raw) == len(text) else _dense(text)
    blanked = raw.translate(_WITHOUT_HIGH if dense else _WITH_HIGH, b"'")
    words = blanked.split(None, _WORDS_HEAD)
    if len(words) > _WORDS_HEAD:
        words += words.pop().rsplit(None, _WORDS_TAIL)[-_WORDS_TAIL:]
    found = marks.find(raw)
    newlines = raw.count(b"\n")
    return Scan(
        text=text,
        chars=len(prompt),
        words=words,
        dense=dense,
        marks=found,
        code_signs=_code_signs(found, words),
        newlines=newlines,
        numbers=blanked.count(b" 0") + blanked.startswith(b"0"),
        fence=bool(found & marks.FENCE) and b"```" in raw,
        trace=newlines > 0 and bool(found & marks.BRACKET) and any(mark in raw for mark in _TRACES),
        steps=_steps(raw, dense),
        question=b"?" in raw or (dense != "" and "？" in text),
        asks_last=text.endswith(("?", "？", "? ", "?\n")),
        quote=bool(found & marks.QUOTE) or (dense != "" and "「" in text),
        colon=bool(found & marks.COLON) or (dense != "" and "：" in text),
    )


def _code_signs(found: int, words: list[bytes]) -> int:
    if not found & marks.MAYBE_CODE:
        return 0
    return (found & marks.CODE).bit_count() + len(_CODE_WORDS.intersection(words))


def _dense(text: str) -> str:
    """Runs of scripts without blanks, each closed by a bar; "" if there are none."""
    runs = _DENSE.findall(text)
    if not runs:
        return ""
    joined = "|".join(runs)
    if len(joined) > _DENSE_HEAD + _DENSE_TAIL:
        joined = f"{joined[:_DENSE_HEAD]}|{joined[-_DENSE_TAIL:]}"
    return f"^{joined}|"


def _steps(raw: bytes, dense: str) -> bool:
    if dense:
        return any(mark in dense for mark in _STEPS_DENSE)
    return b"step" in raw and any(mark in raw for mark in _STEPS)
