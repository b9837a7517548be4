"""Rules in words people read. UI thread only."""

from PySide6.QtCore import QCoreApplication

from laya_desktop.config.routing import Condition, Rule, Target
from laya_desktop.ui import format


def strategy(name: str) -> str:
    """`min latency` and so on."""
    translate = QCoreApplication.translate
    words = {
        "min_latency": translate("routing", "lowest latency"),
        "priority": translate("routing", "priority"),
        "round_robin": translate("routing", "round robin"),
        "least_busy": translate("routing", "least busy"),
        "quality": translate("routing", "quality"),
    }
    return words.get(name, name)


def task(name: str) -> str:
    translate = QCoreApplication.translate
    words = {
        "chat": translate("routing", "chat"),
        "code": translate("routing", "code"),
        "reasoning": translate("routing", "reasoning"),
    }
    return words.get(name, name)


def when(rule: Rule) -> str:
    """When the rule matches, as one sentence."""
    translate = QCoreApplication.translate
    if rule.when is None:
        return translate("routing", "every prompt")
    return translate("routing", "when {0}").format(condition(rule.when))


def condition(node: Condition) -> str:
    """A condition with its nested ones; groups within groups are in brackets."""
    translate = QCoreApplication.translate
    parts = _leaves(node)
    alone = len(parts) + sum(bool(group) for group in (node.any, node.all, node.not_)) == 1
    if node.any:
        parts.append(_group(node.any, translate("routing", " or "), alone=alone))
    if node.all:
        parts.append(_group(node.all, translate("routing", " and "), alone=alone))
    if node.not_:
        parts.append(
            translate("routing", "not {0}").format(
                _group(node.not_, translate("routing", " or "), alone=False)
            )
        )
    return translate("routing", " and ").join(parts)


def target(use: Target) -> str:
    """Whom the rule sends to, without the strategy."""
    if use.tag:
        return QCoreApplication.translate("routing", "models tagged “{0}”").format(use.tag)
    return ", ".join(use.models)


def _group(nodes: tuple[Condition, ...], joint: str, *, alone: bool) -> str:
    text = joint.join(f"({condition(node)})" if _is_long(node) else condition(node) for node in nodes)
    return text if alone or len(nodes) == 1 else f"({text})"


def _is_long(node: Condition) -> bool:
    """Whether the words of the node need brackets within a group."""
    groups = [group for group in (node.any, node.all, node.not_) if group]
    return len(_leaves(node)) + sum(len(group) for group in groups) > 1


def _leaves(node: Condition) -> list[str]:
    translate = QCoreApplication.translate
    parts: list[str] = []
    if node.task:
        parts.append(translate("routing", "the task is {0}").format(task(node.task)))
    if node.has_code is not None:
        parts.append(
            translate("routing", "it has code") if node.has_code else translate("routing", "it has no code")
        )
    if node.keywords_any:
        parts.append(translate("routing", "it has one of {0}").format(_quoted(node.keywords_any)))
    if node.keywords_all:
        parts.append(translate("routing", "it has all of {0}").format(_quoted(node.keywords_all)))
    if node.regex:
        parts.append(translate("routing", "it matches {0}").format(node.regex))
    if node.min_chars is not None:
        parts.append(translate("routing", "at least {0} characters").format(format.number(node.min_chars)))
    if node.max_chars is not None:
        parts.append(translate("routing", "at most {0} characters").format(format.number(node.max_chars)))
    if node.caller:
        parts.append(translate("routing", "asked by {0}").format(_caller(node.caller.value)))
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


def _quoted(words: tuple[str, ...], most: int = 6) -> str:
    shown = ", ".join(f"“{word}”" for word in words[:most])
    return f"{shown}, …" if len(words) > most else shown
