"""Rules without effect are told with their lines."""

import pytest

from laya_desktop.config.checks import check
from laya_desktop.config.reader import read


def _notes(*rules: str) -> list[str]:
    lines = "".join(f"    - {{use: a, {rule}}}\n" for rule in rules)
    text = f"models: [{{name: a, path: x.gguf}}]\nrouter:\n  rules:\n{lines}"
    checked = check(read(text.encode(), "config.yaml"), None)
    assert not checked.problems
    return list(checked.notes)


@pytest.mark.parametrize(
    "when",
    [
        "{min_chars: 10, all: [{max_chars: 5}]}",
        "{task: chat, all: [{all: [{task: code}]}]}",
        "{task: chat, not: {task: chat}}",
        "{min_tokens: 9, not: {min_tokens: 5}}",
        "{has_url: true, any: [{has_url: false}, {task: chat, all: [{task: code}]}]}",
        "{keywords_any: [bugfix], not: {keywords_any: [bug, fix]}}",
    ],
)
def test_conditions_that_exclude_each_other(when: str) -> None:
    (note,) = _notes(f"name: odd, when: {when}")
    assert note.startswith("config.yaml:4: router.rules[0]: the rule 'odd' can never match")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("{task: code}", "{task: code, has_code: true}"),
        ("{min_chars: 10}", "{min_chars: 20, max_chars: 90}"),
        ("{keywords_any: [bug, fix]}", "{keywords_any: [BugFix]}"),
        ("{keywords_all: [bug]}", "{keywords_all: [the bug, here]}"),
        ("{any: [{task: chat}, {has_url: true}]}", "{has_url: true}"),
        ("{task: code}", "{any: [{task: code, has_url: true}, {all: [{task: code}]}]}"),
        ("{not: {max_chars: 5}}", "{not: {max_chars: 5}, min_chars: 6}"),
        ("{all: [{task: code}, {memory: low}]}", "{task: code, memory: low}"),
    ],
)
def test_a_rule_behind_one_that_takes_the_same_prompts(first: str, second: str) -> None:
    notes = _notes(f"name: one, when: {first}", f"name: two, when: {second}")
    sentence = "the rule 'two' never decides: 'one' before it takes every such prompt."
    assert notes == [f"config.yaml:5: router.rules[1]: {sentence}"]


def test_everything_behind_a_rule_without_condition() -> None:
    assert len(_notes("name: all", "name: two, when: {task: code}", "name: three")) == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("{task: code, has_code: true}", "{task: code}"),
        ("{min_chars: 20}", "{min_chars: 10}"),
        ("{keywords_any: [bugfix]}", "{keywords_any: [bug]}"),
        ("{any: [{task: chat}, {has_url: true}], has_code: true}", "{has_url: true}"),
        ("{task: code}", "{any: [{task: code}, {has_url: true}]}"),
        ("{warm: a}", "{busy: a}"),
        ("{not: {task: code}}", "{not: {task: chat}}"),
    ],
)
def test_rules_that_may_decide_are_not_warned_of(first: str, second: str) -> None:
    assert not _notes(f"name: one, when: {first}", f"name: two, when: {second}")


def test_a_rule_that_is_off_hides_nothing() -> None:
    assert not _notes("name: one, enabled: false", "name: two, when: {task: code}")


def test_models_whose_state_is_asked_for_must_exist() -> None:
    text = (
        "models: [{name: a, path: x.gguf}]\nrouter:\n  rules:\n"
        "    - {name: r, use: a, when: {any: [{warm: a}, {not: {busy: b}}]}}\n"
    )
    (problem,) = check(read(text.encode(), "config.yaml"), None).problems
    assert (problem.line, problem.field) == (4, "router.rules[0].when.any[1].not.busy")
