"""What each key of a condition means, as a piece of Python that `rules.py` joins into one function.

A new condition is a field of the schema's `Condition` and one entry here. Values that users typed never
become source: they are constants that the source refers to by name.
"""

import re
from collections.abc import Callable, Sequence
from enum import Enum
from itertools import chain

from laya_desktop.config.schema import Condition
from laya_desktop.core.types import ModelState

FEATURES = {
    "task": ("task", "=="),
    "min_confidence": ("confidence", ">="),
    "max_confidence": ("confidence", "<="),
    "light": ("light", "is"),
    "min_chars": ("chars", ">="),
    "max_chars": ("chars", "<="),
    "min_lines": ("lines", ">="),
    "max_lines": ("lines", "<="),
    "min_numbers": ("numbers", ">="),
    "max_numbers": ("numbers", "<="),
    "min_tokens": ("tokens", ">="),
    "max_tokens": ("tokens", "<="),
    "min_messages": ("messages", ">="),
    "max_messages": ("messages", "<="),
    "min_turns": ("user_turns", ">="),
    "max_turns": ("user_turns", "<="),
    "has_code": ("has_code", "is"),
    "has_fence": ("has_fence", "is"),
    "has_trace": ("has_trace", "is"),
    "has_question": ("has_question", "is"),
    "has_steps": ("has_steps", "is"),
    "has_url": ("has_url", "is"),
    "has_maths": ("has_maths", "is"),
    "has_choices": ("has_choices", "is"),
    "has_system": ("has_system", "is"),
    "language": ("language", "=="),
    "script": ("script", "=="),
    "caller": ("caller", "=="),
}
"""Keys that compare one feature with a value: the feature and the operator."""

_LOADED = frozenset((ModelState.WARM.value, ModelState.BUSY.value))
_BUSY = frozenset((ModelState.BUSY.value,))


def grams(text: str) -> set[int]:
    """Four neighbouring bytes each, as numbers, of all words of a text."""
    raw = " ".join(set(text.split())).encode("utf-8", "surrogatepass")
    found: set[int] = set()
    for start in range(4):
        whole = len(raw) - (len(raw) - start) % 4
        found.update(memoryview(raw[start:whole]).cast("I").tolist())
    return found


class Source:
    """Collects the constants and the features that expressions refer to.

    Expressions speak of `models` (the state of each model by its registered name), `memory_low`, the features
    by their names, constants, and `grams` if there are many keywords: to search a text for a keyword costs a
    third of a microsecond, to see that its grams are missing a tenth of that.
    """

    def __init__(self, registered: Callable[[str], str | None], *, use_grams: bool = False) -> None:
        """`registered` gives the registered name for a name or alias."""
        self.use_grams = use_grams
        self.constants: dict[str, object] = {}
        self.features: set[str] = set()
        self._registered = registered

    def constant(self, value: object) -> str:
        name = f"k{len(self.constants)}"
        self.constants[name] = value.value if isinstance(value, Enum) else value
        return name

    def expression(self, condition: Condition | None) -> str:
        """An expression that is true if the condition holds; what costs least comes first."""
        if condition is None:
            return "True"
        parts = [
            f"{self._feature(feature)} {operator} {self.constant(value)}"
            for key, (feature, operator) in FEATURES.items()
            if (value := getattr(condition, key)) is not None
        ]
        if condition.memory is not None:
            parts.append("memory_low" if condition.memory == "low" else "not memory_low")
        if condition.warm is not None:
            parts.append(self._in_state(condition.warm, _LOADED))
        if condition.busy is not None:
            parts.append(self._in_state(condition.busy, _BUSY))
        if condition.keywords_all is not None:
            parts.append(_joined("and", self._keywords(condition.keywords_all)))
        if condition.keywords_any is not None:
            parts.append(_joined("or", self._keywords(condition.keywords_any)))
        if condition.regex is not None:
            search = re.compile(condition.regex, re.IGNORECASE).search
            parts.append(f"{self.constant(search)}({self._feature('text')}) is not None")
        if condition.all is not None:
            parts.append(_joined("and", map(self.expression, condition.all)))
        if condition.any is not None:
            parts.append(_joined("or", map(self.expression, condition.any)))
        if condition.not_ is not None:
            parts.append(f"not {_joined('or', map(self.expression, condition.not_))}")
        return _joined("and", parts)

    def _feature(self, name: str) -> str:
        self.features.add(name)
        return name

    def _keywords(self, words: Sequence[str]) -> list[str]:
        return [self._keyword(word.casefold()) for word in words]

    def _keyword(self, word: str) -> str:
        found = f"{self.constant(word)} in {self._feature('text')}"
        parts = frozenset(chain.from_iterable(map(grams, word.split())))
        return f"({self.constant(parts)} <= grams and {found})" if self.use_grams and parts else found

    def _in_state(self, model: str, states: frozenset[str]) -> str:
        name = self._registered(model)
        if name is None:
            return "False"
        key = self.constant(name)
        return f"({key} in models and models[{key}].state in {self.constant(states)})"


def _joined(operator: str, parts: "Sequence[str] | map[str]") -> str:
    return f"({f' {operator} '.join(parts)})"
