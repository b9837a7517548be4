"""Slots of the KV cache: which tokens each one holds, and which one serves a new prompt best."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Slot:
    """One sequence of the cache. `tokens` is exactly what it holds, also after its answer has ended, so that
    the next turn of the same chat finds it. `last_used` counts uses of all slots; 0 is never."""

    sequence: int
    tokens: list[int] = field(default_factory=list)
    last_used: int = 0
    busy: bool = False


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """Number of tokens that both begin with."""
    for at, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return at
    return min(len(left), len(right))


def choose_slot(slots: Sequence[Slot], prompt: Sequence[int]) -> Slot | None:
    """The idle slot with the longest common prefix; None while all are busy.

    Chats that share no more than a system text are not worth each other's cache: a slot that would lose more
    than half of what it holds is passed over for the one that was unused for longest.
    """
    idle = [slot for slot in slots if not slot.busy]
    if not idle:
        return None
    best = max(idle, key=lambda slot: common_prefix(slot.tokens, prompt))
    if 2 * common_prefix(best.tokens, prompt) >= len(best.tokens):
        return best
    return min(idle, key=lambda slot: slot.last_used)
