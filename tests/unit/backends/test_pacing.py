"""The pace of prefill on machines of different speeds."""

import pytest

from laya_desktop.backends.common.pacing import ALONE_S, SHARED_S, PrefillPace


def settle(per_token_s: float, fixed_s: float, *, shared: bool) -> tuple[int, float]:
    """Budget and step time after a while on a machine that computes at this speed."""
    pace = PrefillPace(2, fixed_s + 2 * per_token_s)
    for _ in range(50):
        pace.measured(fixed_s, prefilled=0, shared=False)
        count = pace.budget(shared=shared)
        pace.measured(fixed_s + count * per_token_s, prefilled=count, shared=shared)
    return count, fixed_s + count * per_token_s


@pytest.mark.parametrize(("per_token_s", "fixed_s"), [(0.004, 0.01), (0.02, 0.03), (0.001, 0.005)])
def test_steps_take_the_time_allowed(per_token_s: float, fixed_s: float) -> None:
    assert settle(per_token_s, fixed_s, shared=False)[1] == pytest.approx(ALONE_S, rel=0.15)
    assert settle(per_token_s, fixed_s, shared=True)[1] <= SHARED_S + 4 * per_token_s


def test_fast_machines_fill_the_batch() -> None:
    assert settle(1e-5, 1e-3, shared=False)[0] == 512


def test_prompts_get_on_where_every_step_is_slow() -> None:
    assert settle(0.01, 1.0, shared=False)[0] >= 50
    assert settle(0.01, 1.0, shared=True)[0] >= 10


def test_the_short_rest_of_a_prompt_changes_nothing() -> None:
    pace = PrefillPace(2, 0.01)
    before = pace.budget(shared=False)
    pace.measured(0.02, prefilled=3, shared=False)
    assert pace.budget(shared=False) == before
