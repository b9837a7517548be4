"""Whether a rule's condition holds for the features of a request. One function per leaf; pure."""

import re
from collections.abc import Callable
from typing import Any

from laya_desktop.config.schema import Condition
from laya_desktop.engine.routing.features import Features

_LEAVES: dict[str, Callable[[Features, Any], bool]] = {
    "task": lambda features, task: features.task == task,
    "keywords_any": lambda features, words: any(word.casefold() in features.text for word in words),
    "keywords_all": lambda features, words: all(word.casefold() in features.text for word in words),
    "regex": lambda features, pattern: re.search(pattern, features.text, re.IGNORECASE) is not None,
    "min_chars": lambda features, bound: features.chars >= bound,
    "max_chars": lambda features, bound: features.chars <= bound,
    "has_code": lambda features, wanted: features.has_code is wanted,
    "caller": lambda features, caller: features.caller == caller,
}


def holds(condition: Condition | None, features: Features) -> bool:
    """All leaves and all groups of a condition hold; no condition always holds."""
    if condition is None:
        return True
    if condition.any is not None and not any(holds(part, features) for part in condition.any):
        return False
    if condition.all is not None and not all(holds(part, features) for part in condition.all):
        return False
    if condition.not_ is not None and any(holds(part, features) for part in condition.not_):
        return False
    return all(
        leaf(features, value)
        for name, leaf in _LEAVES.items()
        if (value := getattr(condition, name)) is not None
    )
