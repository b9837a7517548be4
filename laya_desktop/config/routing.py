"""The settings of the router: strategies, rules and their conditions."""

import re
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from laya_desktop.config.fields import (
    Keyword,
    Keywords,
    Name,
    Names,
    OptionalInteger,
    OptionalText,
    Section,
    Switch,
    empty_is_none,
    null_is_empty,
    one_or_more,
    setting,
)
from laya_desktop.config.scalar import literal
from laya_desktop.core.types import Caller


class Strategy(StrEnum):
    """How the router chooses among models that could answer."""

    MIN_LATENCY = "min_latency"
    PRIORITY = "priority"
    ROUND_ROBIN = "round_robin"
    LEAST_BUSY = "least_busy"
    QUALITY = "quality"


_EFFECTIVE_STRATEGIES = [Strategy.MIN_LATENCY.value, Strategy.PRIORITY.value]


def _regex(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise PydanticCustomError("regex", f"not a regular expression: {error}") from error
    return value


Conditions = Annotated[tuple["Condition", ...], BeforeValidator(one_or_more), Field(min_length=1)]
Pattern = Annotated[str, BeforeValidator(literal), Field(max_length=1000), AfterValidator(_regex)]


class Condition(Section):
    """When a rule applies. Several keys in one condition must all hold."""

    any: Conditions | None = setting(None, "At least one of these conditions holds.", "live")
    all: Conditions | None = setting(None, "All of these conditions hold.", "live")
    not_: Conditions | None = setting(None, "None of these conditions holds.", "live", alias="not")
    task: Literal["chat", "code", "reasoning", "writing", "translation"] | None = setting(
        None, "What the prompt asks for.", "live"
    )
    keywords_any: Keywords | None = setting(
        None, "The prompt contains one of these words; upper and lower case are the same.", "live"
    )
    keywords_all: Keywords | None = setting(
        None, "The prompt contains all of these words; upper and lower case are the same.", "live"
    )
    regex: Pattern | None = setting(None, "A regular expression that is found in the prompt.", "live")
    min_chars: OptionalInteger = setting(None, "The prompt has at least this many characters.", "live", ge=0)
    max_chars: OptionalInteger = setting(None, "The prompt has at most this many characters.", "live", ge=0)
    has_code: Switch | None = setting(None, "Whether the prompt contains code.", "live")
    caller: Caller | None = setting(
        None, "Who asks: the window, the quick prompt, the API or a command.", "live"
    )

    @model_validator(mode="after")
    def _says_something(self) -> "Condition":
        if not self.model_fields_set:
            raise PydanticCustomError(
                "empty", "this condition is empty; leave out 'when' to match every prompt"
            )
        if self.min_chars is not None and self.max_chars is not None and self.min_chars > self.max_chars:
            raise PydanticCustomError("empty", "min_chars is larger than max_chars, so this never holds")
        return self


class Target(Section):
    """Whom a rule sends the prompt to: named models, or all models with a tag."""

    models: Annotated[tuple[Name, ...], BeforeValidator(one_or_more)] = setting(
        (), "Names of models.", "live"
    )
    tag: OptionalText = setting(None, "Every model that has this tag.", "live")
    strategy: Strategy | None = setting(
        None,
        "How to choose among them; router.strategy if absent.",
        "live",
        effective=_EFFECTIVE_STRATEGIES,
    )

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, data: object) -> object:
        return {"models": data} if isinstance(data, str | list | tuple) else data

    @model_validator(mode="after")
    def _names_something(self) -> "Target":
        if bool(self.models) == bool(self.tag):
            raise PydanticCustomError("target", "name either models or a tag")
        return self


class Rule(Section):
    """The first enabled rule whose condition holds decides."""

    name: Keyword = setting(..., "Shown where a decision is explained.", "live")
    enabled: Switch = setting(True, "Whether the rule is looked at.", "live")
    when: Annotated[Condition | None, BeforeValidator(empty_is_none)] = setting(
        None, "The condition; without one the rule matches every prompt.", "live"
    )
    use: Target = setting(
        ..., "A model, a list of models, {models: [...], strategy: ...} or {tag: ...}.", "live"
    )


Rules = Annotated[tuple[Rule, ...], BeforeValidator(null_is_empty)]


class RouterConfig(Section):
    """Which model answers."""

    mode: Literal["local"] = setting("local", "Routing happens inside the app.", "restart")
    strategy: Strategy = setting(
        Strategy.MIN_LATENCY,
        "How to choose where no rule does: min_latency takes the fastest model, priority the lowest number.",
        "live",
        effective=_EFFECTIVE_STRATEGIES,
    )
    fallback_models: Names = setting(
        (),
        "Tried in this order when the chosen model cannot be loaded or fails before its first token.",
        "live",
    )
    rules: Rules = setting((), "Looked at from top to bottom.", "live", max_length=500)
