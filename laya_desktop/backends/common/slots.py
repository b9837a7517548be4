"""Slots of the KV cache: which tokens each one holds, and which one serves a new prompt best."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Slot:
    """One sequence of the cache. `tokens` is exactly what it holds, also after its answer has ended, so that
    the next turn of the same chat finds it. `origins` gives for each token the position of the first one of
    the block that it was computed in. `last_used` counts uses of all slots; 0 is never."""

    sequence: int
    tokens: list[int] = field(default_factory=list)
    origins: list[int] = field(default_factory=list)
    last_used: int = 0
    busy: bool = False

    def append(self, tokens: Sequence[int], block: int) -> None:
        """Note tokens that are computed together, in blocks of `block` that round alike."""
        start = len(self.tokens)
        self.origins += [start + at - at % block for at in range(len(tokens))]
        self.tokens += tokens

    def reusable(self, prompt: Sequence[int], *, reproducible: bool) -> int:
        """How many tokens at the head of the slot serve `prompt`. Its last token is never among them, since
        its logits are not kept. A block cut in two rounds differently from the whole: `reproducible` answers
        start at the head of a block, so that the same request comes to the same text."""
        kept = min(common_prefix(self.tokens, prompt), len(prompt) - 1)
        if reproducible and kept < len(self.tokens):
            return self.origins[kept]
        return kept

    def cut(self, kept: int) -> None:
        """Note that only the first `kept` tokens are left."""
        del self.tokens[kept:], self.origins[kept:]


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
