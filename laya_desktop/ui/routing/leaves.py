"""Single conditions of rules in words people read. UI thread only."""

from PySide6.QtCore import QCoreApplication

from laya_desktop.config.routing import Condition
from laya_desktop.ui import format


def task(name: str) -> str:
    translate = QCoreApplication.translate
    words = {
        "chat": translate("routing", "chat"),
        "code": translate("routing", "code"),
        "reasoning": translate("routing", "reasoning"),
        "writing": translate("routing", "writing"),
        "translation": translate("routing", "translation"),
    }
    return words.get(name, name)


def leaves(node: Condition) -> list[str]:
    """What a condition asks for itself, without its groups."""
    return [*_meaning(node), *_contents(node), *_counts(node), *_surroundings(node)]


def _meaning(node: Condition) -> list[str]:
    translate = QCoreApplication.translate
    parts: list[str] = []
    if node.task:
        parts.append(translate("routing", "the task is {0}").format(task(node.task)))
    if node.min_confidence is not None:
        parts.append(translate("routing", "at least {0} certain").format(f"{node.min_confidence:.0%}"))
    if node.max_confidence is not None:
        parts.append(translate("routing", "at most {0} certain").format(f"{node.max_confidence:.0%}"))
    if node.light is not None:
        parts.append(
            translate("routing", "it is light") if node.light else translate("routing", "it is not light")
        )
    if node.language:
        parts.append(translate("routing", "the language is {0}").format(_language(node.language)))
    if node.script:
        parts.append(translate("routing", "the script is {0}").format(node.script))
    return parts


def _contents(node: Condition) -> list[str]:
    translate = QCoreApplication.translate
    flags = [
        (node.has_code, translate("routing", "it has code"), translate("routing", "it has no code")),
        (
            node.has_fence,
            translate("routing", "it has a code block"),
            translate("routing", "it has no code block"),
        ),
        (
            node.has_trace,
            translate("routing", "it has a stack trace"),
            translate("routing", "it has no stack trace"),
        ),
        (
            node.has_question,
            translate("routing", "it asks a question"),
            translate("routing", "it asks no question"),
        ),
        (node.has_steps, translate("routing", "it wants steps"), translate("routing", "it wants no steps")),
        (node.has_url, translate("routing", "it has a link"), translate("routing", "it has no link")),
        (node.has_maths, translate("routing", "it has formulas"), translate("routing", "it has no formulas")),
        (
            node.has_choices,
            translate("routing", "it offers choices"),
            translate("routing", "it offers no choices"),
        ),
        (
            node.has_system,
            translate("routing", "there is a system prompt"),
            translate("routing", "there is no system prompt"),
        ),
    ]
    parts = [yes if wanted else no for wanted, yes, no in flags if wanted is not None]
    if node.keywords_any:
        parts.append(translate("routing", "it has one of {0}").format(_quoted(node.keywords_any)))
    if node.keywords_all:
        parts.append(translate("routing", "it has all of {0}").format(_quoted(node.keywords_all)))
    if node.regex:
        parts.append(translate("routing", "it matches {0}").format(node.regex))
    return parts


def _counts(node: Condition) -> list[str]:
    translate = QCoreApplication.translate
    bounds = [
        (node.min_chars, translate("routing", "at least {0} characters")),
        (node.max_chars, translate("routing", "at most {0} characters")),
        (node.min_lines, translate("routing", "at least {0} lines")),
        (node.max_lines, translate("routing", "at most {0} lines")),
        (node.min_numbers, translate("routing", "at least {0} numbers")),
        (node.max_numbers, translate("routing", "at most {0} numbers")),
        (node.min_tokens, translate("routing", "at least {0} tokens")),
        (node.max_tokens, translate("routing", "at most {0} tokens")),
        (node.min_messages, translate("routing", "at least {0} messages")),
        (node.max_messages, translate("routing", "at most {0} messages")),
        (node.min_turns, translate("routing", "at least {0} prompts")),
        (node.max_turns, translate("routing", "at most {0} prompts")),
    ]
    return [text.format(format.number(bound)) for bound, text in bounds if bound is not None]


def _surroundings(node: Condition) -> list[str]:
    translate = QCoreApplication.translate
    parts: list[str] = []
    if node.caller:
        parts.append(translate("routing", "asked by {0}").format(_caller(node.caller.value)))
    if node.warm:
        parts.append(translate("routing", "{0} is loaded").format(node.warm))
    if node.busy:
        parts.append(translate("routing", "{0} is busy").format(node.busy))
    if node.memory:
        parts.append(
            translate("routing", "memory is low")
            if node.memory == "low"
            else translate("routing", "memory is not low")
        )
    return parts


def _caller(name: str) -> str:
    translate = QCoreApplication.translate
    words = {
        "chat": translate("routing", "this window"),
        "quick_prompt": translate("routing", "the quick prompt"),
        "api": translate("routing", "a program"),
        "cli": translate("routing", "the command line"),
    }
    return words.get(name, name)


def _language(name: str) -> str:
    translate = QCoreApplication.translate
    words = {
        "en": translate("routing", "English"),
        "zh": translate("routing", "Chinese"),
        "ja": translate("routing", "Japanese"),
        "ko": translate("routing", "Korean"),
        "other": translate("routing", "another"),
    }
    return words.get(name, name)


def _quoted(words: tuple[str, ...], most: int = 6) -> str:
    shown = ", ".join(f"“{word}”" for word in words[:most])
    return f"{shown}, …" if len(words) > most else shown
