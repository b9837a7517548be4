"""How many prompt tokens one step may compute, so that nobody waits long for a step to end."""

ALONE_S = 0.35
"""Time of a step that only prefills. A Stop is noticed between steps."""

SHARED_S = 0.09
"""Time of a step while others decode: longer ones would be seen as stutter in their text."""


class PrefillPace:
    """Learns this machine's speed from the steps as they come."""

    def __init__(self, tokens: int, seconds: float) -> None:
        """Start from a measured computation of a few tokens."""
        self._tokens_per_s = tokens / max(seconds, 1e-6)
        self._decode_s = seconds / tokens

    def budget(self, *, decoding: bool) -> int:
        """Prompt tokens for the next step, at least one."""
        # Where decoding alone takes that long, prompts still get on.
        shared_s = max(SHARED_S - self._decode_s, 0.2 * self._decode_s)
        seconds = shared_s if decoding else ALONE_S
        return max(1, int(self._tokens_per_s * seconds))

    def measured(self, seconds: float, *, prefilled: int, decoded: int) -> None:
        """Learn from a step: `prefilled` prompt tokens and `decoded` others took `seconds`."""
        if not prefilled:
            self._decode_s += 0.2 * (seconds - self._decode_s)
            return
        prefill_s = max(seconds - self._decode_s, 0.1 * seconds) if decoded else seconds
        self._tokens_per_s += 0.5 * (prefilled / prefill_s - self._tokens_per_s)
