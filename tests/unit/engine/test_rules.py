"""The compiled rules say what a plain reading of the conditions says."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laya_desktop.config.schema import Condition, ModelEntry, Rule
from laya_desktop.core.events import ModelStatus
from laya_desktop.core.types import Caller, ChatRequest, Message, ModelState, Role
from laya_desktop.engine.names import ModelNames
from laya_desktop.engine.routing.features import Features, extract
from laya_desktop.engine.routing.rules import Rules

NAMES = ModelNames([ModelEntry(name=name, path=f"/{name}.gguf", aliases=(f"{name}2",)) for name in "abc"])
STATES = {"a": ModelState.WARM, "b": ModelState.BUSY, "c": ModelState.COLD}
MODELS = {n: ModelStatus(name=n, backend="gguf", path="", state=state) for n, state in STATES.items()}
TEXTS = [
    "hi",
    "",
    "Please fix the BUG in\n```python\ndef add(a, b): return a - b\n```",
    "帮我重构这个模块",
    "Translate to French: good morning, 3 cats and 12 dogs?",
    "Solve step by step: \\frac{1}{2} + x^2 = 7. a) 1 b) 2 c) 3 see https://example.org",
    "Привет, как дела",
    "word " * 300,
]


def _features(text: str, caller: Caller = Caller.API, *before: str) -> Features:
    turns = tuple(Message(role, content) for content in before for role in (Role.USER, Role.ASSISTANT))
    system = (Message(Role.SYSTEM, "Be brief."),) if before else ()
    return extract(ChatRequest(id="r", messages=(*system, *turns, Message(Role.USER, text)), caller=caller))


FEATURES = [_features(text) for text in TEXTS] + [
    _features("commit it", Caller.CHAT, "write a parser", "and tests"),
    _features("thanks", Caller.CLI, "hello"),
]


def _reads(condition: Condition | None, f: Features, low: bool) -> bool:
    """The meaning of a condition, key by key."""
    if condition is None:
        return True
    checks: list[bool] = []
    for key in condition.model_fields_set:
        value: Any = getattr(condition, key)
        if value is None:
            continue
        own = {"min_confidence": "confidence", "max_confidence": "confidence"}.get(key, key[4:])
        own = "user_turns" if own == "turns" else own
        if key == "any":
            checks.append(any(_reads(part, f, low) for part in value))
        elif key == "all":
            checks.append(all(_reads(part, f, low) for part in value))
        elif key == "not_":
            checks.append(not any(_reads(part, f, low) for part in value))
        elif key == "keywords_any":
            checks.append(any(word.casefold() in f.text for word in value))
        elif key == "keywords_all":
            checks.append(all(word.casefold() in f.text for word in value))
        elif key == "regex":
            checks.append(re.search(value, f.text, re.IGNORECASE) is not None)
        elif key == "warm":
            checks.append(STATES[value[0]] in (ModelState.WARM, ModelState.BUSY))
        elif key == "busy":
            checks.append(STATES[value[0]] is ModelState.BUSY)
        elif key == "memory":
            checks.append((value == "low") is low)
        elif key.startswith("min_"):
            checks.append(getattr(f, own) >= value)
        elif key.startswith("max_"):
            checks.append(getattr(f, own) <= value)
        else:
            checks.append(getattr(f, key) == value)
    return all(checks)


_words = st.sampled_from(["bug", "the", "fix the", "重构", "x", "HELLO", "def add", "nothing", " "])
_lists = st.lists(_words, min_size=1, max_size=4)
_LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "task": st.sampled_from(["chat", "code", "reasoning", "writing", "translation"]),
    "min_confidence": st.floats(0, 1),
    "max_confidence": st.floats(0, 1),
    "keywords_any": _lists,
    "keywords_all": _lists,
    "regex": st.sampled_from([r"\d+", "^hi$", r"(bug|cat)s?", "重", r"\bdef\s+\w+"]),
    "language": st.sampled_from(["en", "zh", "other"]),
    "script": st.sampled_from(["latin", "han", "cyrillic"]),
    "caller": st.sampled_from(["chat", "api", "cli", "quick_prompt"]),
    "warm": st.sampled_from(["a", "b2", "c"]),
    "busy": st.sampled_from(["a2", "b", "c"]),
    "memory": st.sampled_from(["low", "ok"]),
    **{
        f"{bound}_{what}": st.sampled_from([0, 1, 2, 5, 30, 200, 1500])
        for bound in ("min", "max")
        for what in ("chars", "lines", "numbers", "tokens", "messages", "turns")
    },
    **{key: st.booleans() for key in Condition.model_fields if key.startswith("has_") or key == "light"},
}


def _is_valid(data: dict[str, Any]) -> bool:
    return bool(data) and all(
        data.get(f"min_{what}", 0) <= data.get(f"max_{what}", 1e9)
        for what in ("chars", "lines", "numbers", "tokens", "messages", "turns", "confidence")
    )


_leaf = st.lists(st.sampled_from(sorted(_LEAVES)), min_size=1, max_size=3, unique=True).flatmap(
    lambda keys: st.fixed_dictionaries({key: _LEAVES[key] for key in keys})
)
_conditions = st.recursive(
    _leaf.filter(_is_valid),
    lambda inner: (
        st.tuples(
            st.sampled_from(["any", "all", "not"]),
            st.lists(inner, min_size=1, max_size=3),
            _leaf | st.just({}),
        )
        .map(lambda made: {made[0]: made[1], **made[2]})
        .filter(_is_valid)
    ),
    max_leaves=8,
)


def test_every_key_of_a_condition_is_tried() -> None:
    assert set(_LEAVES) | {"any", "all", "not_"} == set(Condition.model_fields)


@settings(max_examples=300, deadline=None)
@given(st.lists(_conditions, min_size=1, max_size=6), st.booleans(), st.booleans())
def test_compiled_rules_equal_a_plain_reading(data: list[dict[str, Any]], low: bool, many: bool) -> None:
    rules = [Rule(name=str(i), when=Condition.model_validate(when), use="a") for i, when in enumerate(data)]
    # With many keywords the text is looked at in another way.
    padding = [Rule(name="p", when=Condition(keywords_any=("zzzz",) * 400), use="a")] if many else []
    compiled = Rules([*rules, *padding], NAMES, lambda tag: set())
    for features in FEATURES:
        expected = [_reads(rule.when, features, low) for rule in rules]
        assert compiled.outcomes(features, MODELS, low)[: len(rules)] == expected
        first = expected.index(True) if True in expected else -1
        assert compiled.match(features, MODELS, low, lambda index: True) == first


@pytest.mark.parametrize("name", ["x' or exit() or '", 'a"""', "\\", "k0", "models"])
def test_nothing_that_users_type_becomes_code(name: str) -> None:
    rule = Rule(name=name, when=Condition(keywords_any=(name,), regex=re.escape(name)), use="a")
    compiled = Rules([rule], NAMES, lambda tag: set())
    assert compiled.match(_features(f"say {name} now"), MODELS, False, lambda index: True) == 0
    assert compiled.match(_features("hello"), MODELS, False, lambda index: True) == -1


def test_a_rule_that_is_not_accepted_lets_the_next_one_decide() -> None:
    compiled = Rules([Rule(name="1", use="a"), Rule(name="2", use="b")], NAMES, lambda tag: set())
    assert compiled.match(FEATURES[0], MODELS, False, lambda index: index == 1) == 1


def test_the_state_of_a_model_that_is_gone_never_holds() -> None:
    compiled = Rules([Rule(name="1", when=Condition(warm="a"), use="a")], NAMES, lambda tag: set())
    assert compiled.match(FEATURES[0], {}, False, lambda index: True) == -1
