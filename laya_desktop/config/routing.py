"""The settings of the router: strategies, rules and their conditions."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from laya_desktop.config.fields import (
    Keyword,
    Keywords,
    Name,
    Names,
    OptionalInteger,
    OptionalNumber,
    OptionalText,
    Section,
    Switch,
    empty_is_none,
    null_is_empty,
    one_or_more,
    setting,
)
from laya_desktop.config.patterns import problem
from laya_desktop.config.scalar import literal
from laya_desktop.core.types import Caller

_SCANNED = "the first 512 and the last 256 characters of the last user turn"


class Strategy(StrEnum):
    """How the router chooses among models that could answer."""

    MIN_LATENCY = "min_latency"
    PRIORITY = "priority"
    ROUND_ROBIN = "round_robin"
    LEAST_BUSY = "least_busy"
    QUALITY = "quality"


MAX_DEPTH = 16
"""Conditions within conditions."""


def _regex(value: str) -> str:
    if sentence := problem(value):
        raise PydanticCustomError("regex", "{problem}", {"problem": sentence})
    return value


def _at_least(what: str) -> Any:
    return setting(None, f"{what}: at least this many.", "live", ge=0)


def _at_most(what: str) -> Any:
    return setting(None, f"{what}: at most this many.", "live", ge=0)


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
    min_confidence: OptionalNumber = setting(
        None, "The task is at least this certain, from 0 to 1.", "live", ge=0, le=1
    )
    max_confidence: OptionalNumber = setting(
        None, "The task is at most this certain, from 0 to 1.", "live", ge=0, le=1
    )
    light: Switch | None = setting(
        None, "Whether the smallest model will do: surely chat, and short.", "live"
    )
    keywords_any: Keywords | None = setting(
        None, f"One of these words is in {_SCANNED}; upper and lower case are the same.", "live"
    )
    keywords_all: Keywords | None = setting(
        None, f"All of these words are in {_SCANNED}; upper and lower case are the same.", "live"
    )
    regex: Pattern | None = setting(
        None,
        f"A regular expression that is found in {_SCANNED}.",
        "live",
    )
    min_chars: OptionalInteger = _at_least("Characters of the prompt")
    max_chars: OptionalInteger = _at_most("Characters of the prompt")
    min_lines: OptionalInteger = _at_least(f"Lines in {_SCANNED}")
    max_lines: OptionalInteger = _at_most(f"Lines in {_SCANNED}")
    min_numbers: OptionalInteger = _at_least(f"Numbers in {_SCANNED}")
    max_numbers: OptionalInteger = _at_most(f"Numbers in {_SCANNED}")
    min_tokens: OptionalInteger = _at_least("Estimated tokens of the prompt with its history")
    max_tokens: OptionalInteger = _at_most("Estimated tokens of the prompt with its history")
    min_messages: OptionalInteger = _at_least("Messages, those of the system and the model included")
    max_messages: OptionalInteger = _at_most("Messages, those of the system and the model included")
    min_turns: OptionalInteger = _at_least("Messages of the user")
    max_turns: OptionalInteger = _at_most("Messages of the user")
    has_code: Switch | None = setting(None, "Whether the prompt contains code.", "live")
    has_fence: Switch | None = setting(None, "Whether the prompt has a code block in backticks.", "live")
    has_trace: Switch | None = setting(None, "Whether the prompt has a stack trace.", "live")
    has_question: Switch | None = setting(None, "Whether the prompt has a question mark.", "live")
    has_steps: Switch | None = setting(None, "Whether the prompt asks for an answer step by step.", "live")
    has_url: Switch | None = setting(None, "Whether the prompt has an address of the web.", "live")
    has_maths: Switch | None = setting(None, "Whether the prompt has formulas.", "live")
    has_choices: Switch | None = setting(None, "Whether the prompt offers answers such as b) and c).", "live")
    has_system: Switch | None = setting(None, "Whether there is a system prompt.", "live")
    language: Literal["en", "zh", "ja", "ko", "other"] | None = setting(
        None, "The prompt's language, as far as its script tells.", "live"
    )
    script: Literal["latin", "han", "kana", "hangul", "cyrillic", "other"] | None = setting(
        None, "The prompt's script.", "live"
    )
    caller: Caller | None = setting(
        None, "Who asks: the window, the quick prompt, the API or a command.", "live"
    )
    warm: Name | None = setting(None, "This model is loaded.", "live")
    busy: Name | None = setting(None, "This model is answering someone.", "live")
    memory: Literal["low", "ok"] | None = setting(
        None, "low: less memory is free than memory.offload_threshold_gb.", "live"
    )

    @model_validator(mode="after")
    def _says_something(self) -> "Condition":
        if not self.model_fields_set:
            raise PydanticCustomError(
                "empty", "this condition is empty; leave out 'when' to match every prompt"
            )
        for name in type(self).model_fields:
            if name.startswith("min_"):
                upper = f"max_{name.removeprefix('min_')}"
                low, high = getattr(self, name), getattr(self, upper)
                if low is not None and high is not None and low > high:
                    text = f"{name} is larger than {upper}, so this never holds"
                    raise PydanticCustomError("empty", "{text}", {"text": text})
        return self

    @property
    def groups(self) -> "tuple[Condition, ...]":
        """The conditions within this one."""
        return (*(self.any or ()), *(self.all or ()), *(self.not_ or ()))


def _depth(conditions: "tuple[Condition, ...]") -> int:
    return 1 + max((_depth(condition.groups) for condition in conditions), default=0)


class Target(Section):
    """Whom a rule sends the prompt to: named models, or all models with a tag."""

    models: Annotated[tuple[Name, ...], BeforeValidator(one_or_more)] = setting(
        (), "Names of models.", "live"
    )
    tag: OptionalText = setting(None, "Every model that has this tag.", "live")
    strategy: Strategy | None = setting(None, "How to choose among them; router.strategy if absent.", "live")

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

    @model_validator(mode="after")
    def _is_shallow(self) -> "Rule":
        if self.when is not None and _depth((self.when,)) > MAX_DEPTH:
            raise PydanticCustomError("depth", "the conditions are nested too deeply")
        return self


Rules = Annotated[tuple[Rule, ...], BeforeValidator(null_is_empty)]


class RouterConfig(Section):
    """Which model answers."""

    mode: Literal["local"] = setting("local", "Routing happens inside the app.", "restart")
    strategy: Strategy = setting(
        Strategy.MIN_LATENCY,
        "How to choose among the models that a rule or the task allows: min_latency takes the one that is "
        "expected to be done first, priority the lowest number, round_robin the one whose turn it is, "
        "least_busy the one with the fewest requests, quality the largest.",
        "live",
    )
    fallback_models: Names = setting(
        (),
        "Tried in this order when the chosen model cannot be loaded or fails before its first token.",
        "live",
    )
    rules: Rules = setting((), "Looked at from top to bottom.", "live", max_length=2000)
