"""The user's rules, compiled into one function: a thousand of them cost tens of microseconds."""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from laya_desktop.config.schema import Condition, Rule, Strategy
from laya_desktop.core.events import ModelStatus
from laya_desktop.engine.names import ModelNames
from laya_desktop.engine.routing.conditions import Source, grams
from laya_desktop.engine.routing.features import Features

_MANY_KEYWORDS = 150

Accept = Callable[[int], bool]
Match = Callable[[Features, Mapping[str, ModelStatus], bool, Accept], int]
Outcomes = Callable[[Features, Mapping[str, ModelStatus], bool], list[bool]]


@dataclass(frozen=True)
class CompiledRule:
    """`targets` are registered names. `names_words` says that the rule looks for words in this turn."""

    name: str
    targets: frozenset[str]
    strategy: Strategy | None
    names_words: bool


class Rules:
    """The enabled rules of a config, in their order. Immutable. Compiling 1,000 takes tens of milliseconds:
    not on the engine's loop."""

    def __init__(self, rules: Sequence[Rule], names: ModelNames, tagged: Callable[[str], set[str]]) -> None:
        """`tagged` gives the names of the models that have a tag."""
        enabled = [rule for rule in rules if rule.enabled]
        keywords = sum(_keywords(rule.when) for rule in enabled if rule.when is not None)
        self._source = Source(names.get, use_grams=keywords > _MANY_KEYWORDS)
        self.all = tuple(
            CompiledRule(
                name=rule.name,
                targets=frozenset(
                    tagged(rule.use.tag) if rule.use.tag else filter(None, map(names.get, rule.use.models))
                ),
                strategy=rule.use.strategy,
                names_words=rule.when is not None and _names_words(rule.when),
            )
            for rule in enabled
        )
        self._expressions = [self._source.expression(rule.when) for rule in enabled]
        tests = (
            f"    if {expression} and accept({index}): return {index}\n"
            for index, expression in enumerate(self._expressions)
        )
        self._match: Match = self._compiled("accept", f"{''.join(tests)}    return -1\n")

    def match(
        self, features: Features, models: Mapping[str, ModelStatus], memory_low: bool, accept: Accept
    ) -> int:
        """Index of the first rule that holds and that `accept` takes, -1 if there is none."""
        return self._match(features, models, memory_low, accept)

    def outcomes(self, features: Features, models: Mapping[str, ModelStatus], memory_low: bool) -> list[bool]:
        """For each rule, whether its condition holds."""
        return self._outcomes(features, models, memory_low)

    @cached_property
    def _outcomes(self) -> Outcomes:
        """Made when a decision is explained for the first time."""
        found: Outcomes = self._compiled("", f"    return [{', '.join(self._expressions)}]\n")
        return found

    def _compiled(self, argument: str, body: str) -> Any:
        used = "".join(f"    {name} = f.{name}\n" for name in sorted(self._source.features))
        if self._source.use_grams:
            used += "    grams = find_grams(text)\n"
        source = f"def rules(f, models, memory_low, {argument}):\n{used}{body}"
        constants = self._source.constants
        tree = ast.fix_missing_locations(_Embedding(constants).visit(ast.parse(source)))
        scope: dict[str, Any] = {**constants, "find_grams": grams}
        exec(compile(tree, "<rules>", "exec"), scope)
        return scope["rules"]


class _Embedding(ast.NodeTransformer):
    """Puts plain constants in the place of their names: they are reached faster than globals. They never were
    source, so that nothing in them is read as such."""

    def __init__(self, constants: Mapping[str, object]) -> None:
        self._constants = constants

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self._constants.get(node.id)
        return ast.Constant(value) if type(value) in _PLAIN else node  # type: ignore[arg-type]


_PLAIN = (str, int, float, bool, frozenset)


def _names_words(condition: Condition) -> bool:
    return bool(condition.keywords_any or condition.keywords_all or condition.regex) or any(
        map(_names_words, condition.groups)
    )


def _keywords(condition: Condition) -> int:
    own = len(condition.keywords_any or ()) + len(condition.keywords_all or ())
    return own + sum(map(_keywords, condition.groups))
