"""Whether a regular expression is safe to run in the router.

Python's `re` tries one way after the other and cannot be interrupted, so that a pattern such as ``(a+)+b``
stalls the engine for ever on a text of thirty characters. The router runs patterns on `TEXT_CHARS` characters
at most, so that a pattern's time is bounded if its steps from one position are. `problem` computes an upper
bound of them from the number of ways in which each part can match, and refuses what exceeds `MAX_STEPS`:

- a repetition has as many ways as it has lengths, except where what follows cannot begin with a character
  that is repeated (``\\s+\\w``): then only the longest one can succeed;
- a repetition of a group multiplies the ways of its content with themselves for each round;
- alternatives that begin differently exclude each other.

Within the bound the worst text costs some milliseconds, ordinary text microseconds.
"""

import importlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

TEXT_CHARS = 1025
MAX_STEPS = 6 * TEXT_CHARS
"""From one position: a few repetitions of which at most one has many lengths, or two short ones."""

_sre: Any = importlib.import_module("re._parser")

_ALPHABET = frozenset(map(chr, range(128))) | frozenset("é中٣\u00a0…")
_FOREIGN = frozenset(char for char in _ALPHABET if not char.isascii())
_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}
_CLASSES = {
    name: frozenset(filter(re.compile(source).match, _ALPHABET)) for name, source in _CATEGORIES.items()
}
_NOTHING: frozenset[str] = frozenset()

_Chars = frozenset[str]
_Node = tuple[Any, Any]
_CHARS = ("LITERAL", "NOT_LITERAL", "ANY", "IN")


class _Cost(NamedTuple):
    """Ways to match, and steps to try all of them."""

    ways: float
    steps: float


def problem(pattern: str) -> str:
    """Why a pattern is refused, "" if it is fine."""
    try:
        re.compile(pattern, re.IGNORECASE)
        parsed = list(_sre.parse(pattern, re.IGNORECASE))
    except (re.error, OverflowError, RecursionError) as error:
        return f"not a regular expression: {error}"
    try:
        steps = _cost(parsed, _NOTHING).steps
    except (OverflowError, RecursionError):
        steps = MAX_STEPS + 1
    if steps > MAX_STEPS:
        return (
            "this expression can take too long: it has repetitions within repetitions, or several one after "
            "the other that match the same characters; use keywords_all, or 'all' with simpler expressions"
        )
    return ""


def _cost(nodes: Sequence[_Node], after: _Chars) -> _Cost:
    """Upper bounds for a sequence from one position, if what follows it begins with one of `after`. Nothing
    follows at the end of a pattern: the first match is taken."""
    ways, steps = 1.0, 0.0
    for index, (kind, value) in enumerate(nodes):
        follows = _first(nodes[index + 1 :], after)
        match str(kind):
            case "MAX_REPEAT" | "MIN_REPEAT":
                own = _repeated(value, follows)
            case "POSSESSIVE_REPEAT":
                own = _repeated(value, _NOTHING)
            case "SUBPATTERN":
                own = _cost(value[3], follows)
            case "ATOMIC_GROUP":
                own = _cost(value, _NOTHING)
            case "ASSERT" | "ASSERT_NOT":
                own = _cost(value[1], _NOTHING)
            case "BRANCH":
                own = _alternatives(value[1], follows)
            case "GROUPREF_EXISTS":
                own = _alternatives([part or [] for part in value[1:]], follows)
            case _:
                own = _Cost(1, 1)
        steps += ways * own.steps
        ways *= own.ways
    return _Cost(ways, steps)


def _repeated(value: tuple[int, int, Sequence[_Node]], follows: _Chars) -> _Cost:
    least, most, body = value
    most = min(int(most), TEXT_CHARS)
    least = min(int(least), most)
    first = _first(body, _NOTHING)
    once = _cost(body, follows | first if most > 1 else follows)
    if once.ways > 1:
        ways = float(once.ways**most) * (most - least + 1)
        return _Cost(ways, ways * once.steps)
    is_greedy = not first & follows and len(body) == 1 and str(body[0][0]) in _CHARS
    # All rounds together read no more than the text.
    return _Cost(1 if is_greedy else most - least + 1, min(most * once.steps, TEXT_CHARS))


def _alternatives(branches: Sequence[Sequence[_Node]], follows: _Chars) -> _Cost:
    """At most as many ways as the character has that most branches can begin with."""
    ways: dict[str, float] = {}
    costs = [_cost(branch, follows) for branch in branches]
    for branch, cost in zip(branches, costs, strict=True):
        for char in _first(branch, _ALPHABET):
            ways[char] = ways.get(char, 0) + cost.ways
    return _Cost(max(ways.values(), default=1), max(cost.steps for cost in costs))


def _first(nodes: Sequence[_Node], after: _Chars) -> _Chars:
    """Characters that a sequence can begin with, those of `after` too if it can be empty."""
    found = _NOTHING
    for kind, value in nodes:
        match str(kind):
            case char if char in _CHARS:
                return found | _chars(kind, value)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                found |= _first(value[2], _NOTHING)
                if value[0] > 0 and not _can_be_empty(value[2]):
                    return found
            case "SUBPATTERN" | "ATOMIC_GROUP":
                body = value[3] if str(kind) == "SUBPATTERN" else value
                found |= _first(body, _NOTHING)
                if not _can_be_empty(body):
                    return found
            case "BRANCH":
                found = found.union(*(_first(branch, _NOTHING) for branch in value[1]))
                if not any(map(_can_be_empty, value[1])):
                    return found
            case "GROUPREF" | "GROUPREF_EXISTS":
                return _ALPHABET
    return found | after


def _can_be_empty(nodes: Sequence[_Node]) -> bool:
    return bool(_sre.SubPattern(_sre.State(), list(nodes)).getwidth()[0] == 0)


def _chars(kind: object, value: Any) -> _Chars:
    match str(kind):
        case "LITERAL":
            char = chr(value)
            return frozenset((char.lower(), char.upper())) if char.isascii() else _FOREIGN
        case "NOT_LITERAL":
            return _ALPHABET - {chr(value)}
        case "IN":
            return _class(value)
    return _ALPHABET


def _class(parts: Iterable[_Node]) -> _Chars:
    """The characters of a set in brackets. Foreign ones that are named stand for all of them."""
    found, negated = _NOTHING, False
    for kind, value in parts:
        match str(kind):
            case "NEGATE":
                negated = True
            case "CATEGORY":
                found |= _CLASSES[str(value)]
            case "LITERAL":
                found |= _NOTHING if negated and value > 127 else _chars(kind, value)
            case "RANGE":
                low, high = value
                span = frozenset(char for char in _ALPHABET if char.isascii() and low <= ord(char) <= high)
                found |= span | {char.swapcase() for char in span if char.isalpha()}
                if high > 127 and not negated:
                    found |= _FOREIGN
    return _ALPHABET - found if negated else found
