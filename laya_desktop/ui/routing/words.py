"""Rules in words people read. UI thread only."""

from PySide6.QtCore import QCoreApplication

from laya_desktop.config.routing import Condition, Rule, Target
from laya_desktop.ui import format


def strategy(name: str) -> str:
    """`min latency` and so on."""
    tr = QCoreApplication.translate
    words = {
        "min_latency": tr("routing", "lowest latency"),
        "priority": tr("routing", "priority"),
        "round_robin": tr("routing", "round robin"),
        "least_busy": tr("routing", "least busy"),
        "quality": tr("routing", "quality"),
    }
    return words.get(name, name)


def task(name: str) -> str:
    tr = QCoreApplication.translate
    words = {
        "chat": tr("routing", "chat"),
        "code": tr("routing", "code"),
        "reasoning": tr("routing", "reasoning"),
    }
    return words.get(name, name)


def when(rule: Rule) -> str:
    """When the rule matches, as one sentence."""
    tr = QCoreApplication.translate
    if rule.when is None:
        return tr("routing", "every prompt")
    return tr("routing", "when {0}").format(condition(rule.when))


def condition(node: Condition) -> str:
    """A condition with its nested ones; groups within groups are in brackets."""
    tr = QCoreApplication.translate
    parts = _leaves(node)
    alone = len(parts) + sum(bool(group) for group in (node.any, node.all, node.not_)) == 1
    if node.any:
        parts.append(_group(node.any, tr("routing", " or "), alone=alone))
    if node.all:
        parts.append(_group(node.all, tr("routing", " and "), alone=alone))
    if node.not_:
        parts.append(tr("routing", "not {0}").format(_group(node.not_, tr("routing", " or "), alone=False)))
    return tr("routing", " and ").join(parts)


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
    tr = QCoreApplication.translate
    parts: list[str] = []
    if node.task:
        parts.append(tr("routing", "the task is {0}").format(task(node.task)))
    if node.has_code is not None:
        parts.append(tr("routing", "it has code") if node.has_code else tr("routing", "it has no code"))
    if node.keywords_any:
        parts.append(tr("routing", "it has one of {0}").format(_quoted(node.keywords_any)))
    if node.keywords_all:
        parts.append(tr("routing", "it has all of {0}").format(_quoted(node.keywords_all)))
    if node.regex:
        parts.append(tr("routing", "it matches {0}").format(node.regex))
    if node.min_chars is not None:
        parts.append(tr("routing", "at least {0} characters").format(format.number(node.min_chars)))
    if node.max_chars is not None:
        parts.append(tr("routing", "at most {0} characters").format(format.number(node.max_chars)))
    if node.caller:
        parts.append(tr("routing", "asked by {0}").format(_caller(node.caller.value)))
    return parts


def _caller(name: str) -> str:
    tr = QCoreApplication.translate
    words = {
        "chat": tr("routing", "this window"),
        "quick_prompt": tr("routing", "the quick prompt"),
        "api": tr("routing", "a program"),
        "cli": tr("routing", "the command line"),
    }
    return words.get(name, name)


def _quoted(words: tuple[str, ...], most: int = 6) -> str:
    shown = ", ".join(f"“{word}”" for word in words[:most])
    return f"{shown}, …" if len(words) > most else shown
