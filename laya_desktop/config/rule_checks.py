"""Rules that cannot do anything: those that never hold, and those that an earlier rule always comes before.

Both are told from the conditions alone. What is found is certain; not everything is found.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property

from laya_desktop.config.routing import Condition, Rule

_Leaves = dict[str, list[object]]
"""Keys of conditions with the values that must all hold."""

_GROUPS = ("any", "all", "not_")


class _Rule:
    """A rule taken apart. `cases` are sets of leaves of which one holds whenever the rule does."""

    def __init__(self, rule: Rule) -> None:
        self.when = rule.when
        self.name = rule.name

    @cached_property
    def cases(self) -> list[_Leaves]:
        if self.when is None:
            return [{}]
        certain = _certain(self.when)
        if not self.when.any:
            return [certain]
        return [_merged(certain, _certain(part)) for part in self.when.any]

    @cached_property
    def keys(self) -> list[frozenset[str]]:
        return [frozenset(case) for case in self.cases]


def dead_rules(rules: Sequence[Rule]) -> Iterator[tuple[int, str]]:
    """Positions of enabled rules that can never decide, each with a sentence."""
    before: list[_Rule] = []
    for index, rule in enumerate(rules):
        if not rule.enabled:
            continue
        own = _Rule(rule)
        if rule.when is not None and _excludes(_certain(rule.when), rule.when):
            yield index, f"the rule '{rule.name}' can never match: its conditions exclude each other"
        elif (other := next((other for other in before if _covers(other, own)), None)) is not None:
            yield (
                index,
                f"the rule '{rule.name}' never decides: '{other.name}' before it takes every such prompt",
            )
        else:
            before.append(own)


def _covers(earlier: _Rule, later: _Rule) -> bool:
    """Whether the earlier rule holds whenever the later one does."""
    if earlier.when is None:
        return True
    leaves = frozenset(_own(earlier.when))
    return all(leaves <= keys for keys in later.keys) and all(
        _implies(case, earlier.when) for case in later.cases
    )


def _own(condition: Condition) -> dict[str, object]:
    """The leaves of a condition, without those of its groups."""
    return {
        name: value
        for name in condition.model_fields_set
        if name not in _GROUPS and (value := getattr(condition, name)) is not None
    }


def _certain(condition: Condition) -> _Leaves:
    """Leaves that hold whenever the condition does."""
    found: _Leaves = {name: [value] for name, value in _own(condition).items()}
    parts = list(condition.all or ())
    if condition.any is not None and len(condition.any) == 1:
        parts += condition.any
    for part in parts:
        found = _merged(found, _certain(part))
    return found


def _merged(first: _Leaves, second: _Leaves) -> _Leaves:
    return {name: first.get(name, []) + second.get(name, []) for name in first | second}


def _implies(leaves: _Leaves, condition: Condition) -> bool:
    """Whether the condition holds wherever all these leaves do."""
    return (
        all(
            any(_leaf_implies(name, known, wanted) for known in leaves.get(name, ()))
            for name, wanted in _own(condition).items()
        )
        and all(_implies(leaves, part) for part in condition.all or ())
        and (condition.any is None or any(_implies(leaves, part) for part in condition.any))
        and all(_excludes(leaves, part) for part in condition.not_ or ())
    )


def _excludes(leaves: _Leaves, condition: Condition) -> bool:
    """Whether the condition can never hold where all these leaves do."""
    return (
        any(
            _leaf_excludes(leaves, name, known, wanted)
            for name, wanted in _own(condition).items()
            for known in [leaves.get(name, [])]
        )
        or any(_excludes(leaves, part) for part in condition.all or ())
        or (condition.any is not None and all(_excludes(_with(leaves, part), part) for part in condition.any))
        or any(_implies(leaves, part) for part in condition.not_ or ())
    )


def _with(leaves: _Leaves, condition: Condition) -> _Leaves:
    return _merged(leaves, _certain(condition))


def _leaf_implies(name: str, known: object, wanted: object) -> bool:
    if isinstance(known, int | float) and isinstance(wanted, int | float):
        if name.startswith("min_"):
            return known >= wanted
        if name.startswith("max_"):
            return known <= wanted
    if isinstance(known, tuple) and isinstance(wanted, tuple):
        if name == "keywords_any":
            return all(any(_contains(word, part) for part in wanted) for word in known)
        return all(any(_contains(word, part) for word in known) for part in wanted)
    return known == wanted


def _leaf_excludes(leaves: _Leaves, name: str, known: Sequence[object], wanted: object) -> bool:
    kind, _, what = name.partition("_")
    if kind in ("min", "max") and isinstance(wanted, int | float):
        opposite = leaves.get(f"{'max' if kind == 'min' else 'min'}_{what}", [])
        bounds = [bound for bound in opposite if isinstance(bound, int | float)]
        return any(bound < wanted if kind == "min" else bound > wanted for bound in bounds)
    return name in _ONE_VALUE and any(value != wanted for value in known)


_ONE_VALUE = frozenset(
    name
    for name in Condition.model_fields
    if name in ("task", "language", "script", "caller", "memory", "light") or name.startswith("has_")
)
"""Keys of which a request has one value only."""


def _contains(word: object, part: object) -> bool:
    return str(part).casefold() in str(word).casefold()
