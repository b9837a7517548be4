"""Rules in words people read. UI thread only."""

from PySide6.QtCore import QCoreApplication

from laya_desktop.config.routing import Condition, Rule, Target
from laya_desktop.ui.routing.leaves import leaves, task

__all__ = ["condition", "strategy", "target", "task", "when"]


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


def when(rule: Rule) -> str:
    """When the rule matches, as one sentence."""
    translate = QCoreApplication.translate
    if rule.when is None:
        return translate("routing", "every prompt")
    return translate("routing", "when {0}").format(condition(rule.when))


def condition(node: Condition) -> str:
    """A condition with its nested ones; groups within groups are in brackets."""
    translate = QCoreApplication.translate
    parts = leaves(node)
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
    return len(leaves(node)) + sum(len(group) for group in groups) > 1
