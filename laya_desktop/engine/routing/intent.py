"""What a prompt asks for: one of five tasks, with a calibrated confidence. Pure numpy, no I/O after loading.

A multinomial logistic regression: the logits of the tasks are the sum of the weight rows of what is found
in the prompt. Facts (counts in bands, marks of code and maths, groups of words, pairs of these) weigh 1
each; words, pairs of words and pairs of Chinese characters weigh 1/sqrt(n) each, n being their number, so
that a long prompt does not shout. `packaging/train_intent.py` makes the weights.
"""

import math
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping
from functools import cache
from importlib import resources
from io import BytesIO
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from laya_desktop.engine.routing import marks
from laya_desktop.engine.routing.lexicon import Group
from laya_desktop.engine.routing.lexicon import words as lexicon
from laya_desktop.engine.routing.scan import Scan

TASKS = ("chat", "code", "reasoning", "writing", "translation")

CONFIDENT = 0.7
"""Below this confidence a prompt that looks like chat is not sent to the smallest model."""

_PAIRS_HEAD, _PAIRS_TAIL = 32, 16
_OPENING_WORDS, _OPENING_CHARS = 12, 24

# Upper bounds (inclusive) of the bands that counts are put in; a last band is open.
_LENGTH = (3, 6, 12, 25, 60, 150)
_NUMBERS = (0, 1, 2, 4, 9)
_NEWLINES = (0, 2, 8)
_CODE_SIGNS = (0, 1, 2, 4)
_FLAGS = (
    *("fence", "trace", "question", "asks_last", "steps", "quote", "colon"),
    *("maths", "sums", "numbers", "short", "long", "dense", "mixed", "coded"),
)

_GROUPS = len(Group)
_FLAG_BIT = {name: 2 * _GROUPS + index for index, name in enumerate(_FLAGS)}
_PAIRED: tuple[tuple[Group | str, ...], ...] = (
    (Group.WRITE_VERB, Group.WRITE_THING),
    (Group.WRITE_VERB, Group.STORY),
    (Group.WRITE_VERB, Group.CODE_NAME),
    (Group.WRITE_VERB, Group.CODE_THING),
    (Group.CODE_VERB, Group.CODE_THING),
    (Group.CODE_NAME, Group.CODE_THING),
    (Group.CODE_NAME, Group.CODE_VERB),
    (Group.WRITE_THING, Group.CODE_THING),
    (Group.LANGUAGE, Group.SAY),
    (Group.LANGUAGE, Group.TRANSLATE),
    (Group.LANGUAGE, "quote"),
    (Group.LANGUAGE, "colon"),
    (Group.TRANSLATE, "colon"),
    (Group.TRANSLATE, Group.CODE_NAME),
    (Group.MATH, "numbers"),
    (Group.MATH, "maths"),
    (Group.MATH, Group.LOGIC),
    (Group.QUANTITY, "numbers"),
    (Group.QUANTITY, Group.UNIT),
    (Group.UNIT, "numbers"),
    (Group.LOGIC, "numbers"),
    (Group.LOGIC, "question"),
    (Group.LOGIC, "steps"),
    (Group.QUANTITY, "steps"),
    (Group.YOU, "short"),
    (Group.ME, "short"),
    (Group.SMALL_TALK, "short"),
    (Group.SMALL_TALK, Group.YOU),
    (Group.SMALL_TALK, Group.ME),
    (Group.FACT, "short"),
    (Group.FACT, "question"),
    (Group.YOU, Group.WRITE_VERB),
    (Group.STORY, "long"),
    (Group.CODE_THING, "coded"),
    (Group.CODE_SYNTAX, "short"),
    (Group.CODE_SYNTAX, "coded"),
    (Group.CODE_NAME, "coded"),
    (Group.WRITE_VERB, "coded"),
    (Group.MATH, "coded"),
    ("question", "short"),
)

_AT_LENGTH = 1
_AT_NUMBERS = _AT_LENGTH + len(_LENGTH) + 1
_AT_NEWLINES = _AT_NUMBERS + len(_NUMBERS) + 1
_AT_CODE_SIGNS = _AT_NEWLINES + len(_NEWLINES) + 1
_AT_BITS = _AT_CODE_SIGNS + len(_CODE_SIGNS) + 1
_FLAGS_END = 2 * _GROUPS + len(_FLAGS)
_BITS = _FLAGS_END + marks.COUNT
_AT_PAIRED = _AT_BITS + _BITS
FACTS = _AT_PAIRED + len(_PAIRED)
"""Rows of the weights that belong to facts; those of words follow. Row 0 is the bias."""

# The groups of a pair are looked for in the opening, where the wish usually stands.
_PAIR_MASKS = tuple(
    (sum(1 << (part if isinstance(part, Group) else _FLAG_BIT[part]) for part in pair), _AT_PAIRED + index)
    for index, pair in enumerate(_PAIRED)
)
_FLAG = {name: 1 << bit for name, bit in _FLAG_BIT.items()}

# For every byte of the bits and every value of it: the rows of the bits that are set.
_BYTES = (_BITS + 7) // 8
_BYTE_ROWS = tuple(
    tuple(tuple(_AT_BITS + 8 * place + bit for bit in range(8) if value >> bit & 1) for value in range(256))
    for place in range(_BYTES)
)

_ONES = np.ones(1024, np.float32)
"""More than a prompt has facts and tokens: both are cut to the ends of it."""


class Intent(NamedTuple):
    """`task` is the likeliest of `TASKS`, `confidence` its probability; `probabilities` are in that order."""

    task: str
    confidence: float
    probabilities: tuple[float, ...]


def tokens(scan: Scan) -> Iterable[Hashable]:
    """What may have a row of its own: words, neighbouring words at the ends, pairs of dense characters. Some
    come more than once."""
    found = scan.words
    ends = found
    if len(found) > _PAIRS_HEAD + _PAIRS_TAIL:
        ends = found[:_PAIRS_HEAD] + found[-_PAIRS_TAIL:]
    dense = scan.dense
    return chain(found, zip([b"^", *ends], ends, strict=False), map(str.__add__, dense, dense[1:]))


def opening(scan: Scan) -> Iterable[Hashable]:
    """Words, dense characters and their pairs at the start, of which only the groups are looked at."""
    if not scan.dense:
        return scan.words[:_OPENING_WORDS]
    head = scan.dense[: _OPENING_CHARS + 1]
    return chain(scan.words[:_OPENING_WORDS], head, map(str.__add__, head, head[1:]))


class Model:
    """Weights and the rows that tokens have in them. Immutable."""

    def __init__(self, rows: Mapping[Hashable, int], weights: NDArray[np.float32]) -> None:
        self._row = rows.get
        self._weights = weights
        self._groups = [0] * len(weights)
        for group in Group:
            for word in lexicon()[group]:
                if word in rows:
                    self._groups[rows[word]] |= 1 << group
        self._mask = {word: mask for word, row in rows.items() if (mask := self._groups[row])}.get

    def classify(self, scan: Scan) -> Intent:
        """The task of a prompt. Never raises."""
        facts, lexical = self.rows(scan)
        count = len(facts) + len(lexical)
        weighs = _ONES[:count]
        if lexical:
            weighs = weighs.copy()
            weighs[len(facts) :] = 1 / math.sqrt(len(lexical))
        rows = np.fromiter(chain(facts, lexical), np.intp, count)
        logits = weighs @ self._weights.take(rows, 0)
        scores = logits.tolist()
        top = max(scores)
        powers = [math.exp(score - top) for score in scores]
        total = sum(powers)
        return Intent(TASKS[scores.index(top)], 1 / total, tuple([power / total for power in powers]))

    def rows(self, scan: Scan) -> tuple[list[int], set[int]]:
        """Rows of the facts and of the tokens of a prompt."""
        lexical = set(filter(None, map(self._row, tokens(scan))))
        anywhere = 0
        for mask in map(self._groups.__getitem__, lexical):
            anywhere |= mask
        groups = anywhere << _GROUPS
        for mask in filter(None, map(self._mask, opening(scan))):
            groups |= mask
        return _facts(scan, groups), lexical


def _facts(scan: Scan, groups: int) -> list[int]:
    length = len(scan.words) + len(scan.dense) // 2
    bits = groups | _flags(scan, length) | scan.marks << _FLAGS_END
    rows = [
        0,
        _AT_LENGTH + bisect_left(_LENGTH, length),
        _AT_NUMBERS + bisect_left(_NUMBERS, scan.numbers),
        _AT_NEWLINES + bisect_left(_NEWLINES, scan.newlines),
        _AT_CODE_SIGNS + bisect_left(_CODE_SIGNS, scan.code_signs),
    ]
    rows += chain.from_iterable(map(tuple.__getitem__, _BYTE_ROWS, bits.to_bytes(_BYTES, "little")))
    rows += [row for mask, row in _PAIR_MASKS if bits & mask == mask]
    return rows


def _flags(scan: Scan, length: int) -> int:
    flag = _FLAG
    bits = flag["short"] if length <= 12 else flag["long"] if length > 60 else 0
    if scan.fence:
        bits |= flag["fence"]
    if scan.trace:
        bits |= flag["trace"]
    if scan.question:
        bits |= flag["question"]
    if scan.asks_last:
        bits |= flag["asks_last"]
    if scan.steps:
        bits |= flag["steps"]
    if scan.quote:
        bits |= flag["quote"]
    if scan.colon:
        bits |= flag["colon"]
    if scan.marks & marks.MATHS:
        bits |= flag["maths"]
    if scan.marks & marks.SUMS:
        bits |= flag["sums"]
    if scan.numbers > 1:
        bits |= flag["numbers"]
    if scan.has_code:
        bits |= flag["coded"]
    if scan.dense:
        bits |= flag["mixed"] if scan.words else flag["dense"]
    return bits


def pack(rows: Mapping[Hashable, int], weights: NDArray[np.float32]) -> bytes:
    """The weights file of a model; `unpack` reads it. Rows of tokens are in the order of the mapping."""
    kinds: dict[type, list[str]] = {bytes: [], tuple: [], str: []}
    order: dict[type, list[int]] = {bytes: [], tuple: [], str: []}
    for token, row in rows.items():
        kinds[type(token)].append(_spell(token))
        order[type(token)].append(row)
    chosen = [*range(FACTS), *order[bytes], *order[tuple], *order[str]]
    file = BytesIO()
    words, pairs, dense = (
        np.frombuffer("\n".join(kinds[kind]).encode(), np.uint8) for kind in (bytes, tuple, str)
    )
    np.savez_compressed(
        file, weights=weights[chosen].astype(np.float16), words=words, pairs=pairs, dense=dense
    )
    return file.getvalue()


def unpack(data: bytes) -> Model:
    """A model from a weights file."""
    with np.load(BytesIO(data), allow_pickle=False) as arrays:
        weights = arrays["weights"].astype(np.float32)
        listed = {name: arrays[name].tobytes().decode().split("\n") for name in ("words", "pairs", "dense")}
    spelled: Iterable[Hashable] = chain(
        (word.encode() for word in listed["words"]),
        (tuple(pair.encode().split(b" ")) for pair in listed["pairs"]),
        listed["dense"],
    )
    return Model({token: FACTS + index for index, token in enumerate(spelled)}, weights)


def _spell(token: Hashable) -> str:
    if isinstance(token, bytes):
        return token.decode()
    return b" ".join(token).decode() if isinstance(token, tuple) else str(token)


@cache
def model() -> Model:
    """The packaged model; the first call reads it."""
    return unpack(resources.files(__package__).joinpath("intent.npz").read_bytes())
