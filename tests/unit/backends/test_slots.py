"""Which slot a prompt gets, and how much of it serves."""

from laya_desktop.backends.common.slots import Slot, choose_slot, common_prefix


def slot(sequence: int, *tokens: int, last_used: int = 1, busy: bool = False) -> Slot:
    made = Slot(sequence, last_used=last_used, busy=busy)
    made.append(tokens, 4)
    return made


def test_common_prefix() -> None:
    assert common_prefix([], [1]) == 0
    assert common_prefix([1, 2, 3], [1, 2, 4]) == 2
    assert common_prefix([1, 2], [1, 2, 3]) == 2


def test_the_longest_common_prefix_wins() -> None:
    slots = [slot(0, 1, 2), slot(1, 1, 2, 3), slot(2, 9)]
    assert choose_slot(slots, [1, 2, 3, 4]) is slots[1]


def test_busy_slots_are_not_taken() -> None:
    slots = [slot(0, 1, 2, busy=True), slot(1, 9)]
    assert choose_slot(slots, [1, 2, 3]) is slots[1]
    assert choose_slot(slots[:1], [1, 2, 3]) is None


def test_a_chat_is_not_thrown_away_for_a_short_common_beginning() -> None:
    slots = [slot(0, 1, 2, 3, 4, 5, 6, last_used=1), slot(1, last_used=0)]
    assert choose_slot(slots, [1, 2, 7]) is slots[1]


def test_of_unrelated_slots_the_one_longest_unused_goes() -> None:
    slots = [slot(0, 1, 2, last_used=5), slot(1, 3, 4, last_used=3)]
    assert choose_slot(slots, [9, 9]) is slots[1]


def test_the_last_prompt_token_is_computed_again() -> None:
    assert slot(0, 1, 2, 3).reusable([1, 2, 3], reproducible=False) == 2


def test_reproducible_answers_resume_where_a_block_began() -> None:
    held = slot(0, 1, 2, 3, 4, 5, 6)
    held.append([7], 1)
    held.append([8], 1)
    assert held.origins == [0, 0, 0, 0, 4, 4, 6, 7]
    assert held.reusable([1, 2, 3, 4, 5, 6], reproducible=True) == 4
    assert held.reusable([1, 2, 9], reproducible=True) == 0
    assert held.reusable([1, 2, 3, 4, 5, 6, 7, 9], reproducible=True) == 7
    assert held.reusable([1, 2, 3, 4, 5, 6, 7, 8, 9], reproducible=True) == 8


def test_a_cut_slot_holds_its_head() -> None:
    held = slot(0, 1, 2, 3)
    held.cut(1)
    assert held.tokens == [1]
    assert held.origins == [0]
