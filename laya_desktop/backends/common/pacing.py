"""How many prompt tokens one step may compute, so that nobody waits long for a step to end."""

ALONE_S = 0.35
"""Time of a step that only computes prompts. A Stop is noticed between steps."""

SHARED_S = 0.09
"""Time of a step while others decode: longer ones would be seen as stutter in their text."""

_FEWEST, _MOST = 4.0, 512.0


class PrefillPace:
    """Finds by trial what this machine computes in the time allowed, and follows it as it changes: with the
    depth of the context, and with whatever else the machine does."""

    def __init__(self, tokens: int, seconds: float) -> None:
        """Start from a measured computation of a few tokens."""
        self._step_s = seconds
        """Time of a step without prompts."""
        self._alone = _within_bounds(ALONE_S * tokens / seconds)
        self._shared = _within_bounds(SHARED_S * tokens / seconds)

    def budget(self, *, shared: bool) -> int:
        """Prompt tokens for the next step; `shared` with streams that decode."""
        return int(self._shared if shared else self._alone)

    def measured(self, seconds: float, *, prefilled: int, shared: bool) -> None:
        """Learn from a step with `prefilled` prompt tokens."""
        if not prefilled:
            self._step_s += 0.2 * (seconds - self._step_s)
            return
        # Where a step takes so long in any case, prompts must still get on.
        if shared:
            allowed = max(SHARED_S - self._step_s, 0.2 * self._step_s)
            self._shared = _adapted(self._shared, prefilled, seconds - self._step_s, allowed)
        else:
            allowed = max(ALONE_S - self._step_s, self._step_s)
            self._alone = _adapted(self._alone, prefilled, seconds - self._step_s, allowed)


def _adapted(budget: float, prefilled: int, taken_s: float, allowed_s: float) -> float:
    """A better budget, given what `prefilled` tokens took on top of a step without any."""
    estimate = prefilled * min(2.0, max(0.5, allowed_s / max(taken_s, 1e-6)))
    if estimate < budget and taken_s <= allowed_s:
        return budget  # a short rest of a prompt says nothing about the most that fits
    return _within_bounds((budget + estimate) / 2)


def _within_bounds(tokens: float) -> float:
    return max(_FEWEST, min(_MOST, tokens))
