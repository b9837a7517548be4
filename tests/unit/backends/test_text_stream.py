"""Text from bytes: no delta ends inside a character, stop strings end the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laya_desktop.backends.common.text_stream import TextStream


def deltas(pieces: list[bytes], *stop: str) -> list[str]:
    stream = TextStream(stop)
    texts = []
    for piece in pieces:
        texts.append(stream.feed(piece))
        if stream.stopped:
            return [text for text in texts if text]
    return [text for text in (*texts, stream.finish()) if text]


LLAMA = [b"\xf0\x9f", b"\xa6", b"\x99"]
FLAG = [b"\xf0\x9f", b"\x87", b"\xbb", b"\xf0\x9f", b"\x87", b"\xb3"]
FAMILY = "👨‍👩‍👧".encode()


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (LLAMA, ["🦙"]),
        (FLAG, ["🇻", "🇳"]),
        ([b"\xe6\x97\xa5", b"\xe6\x9c", b"\xac", b"\xe8", b"\xaa\x9e"], ["日", "本", "語"]),
        ([bytes([byte]) for byte in FAMILY], list("👨‍👩‍👧")),
        ([b"plain", b" text"], ["plain", " text"]),
    ],
)
def test_characters_come_out_whole(pieces: list[bytes], expected: list[str]) -> None:
    assert deltas(pieces) == expected


def test_a_stray_byte_becomes_one_replacement_character() -> None:
    assert "".join(deltas([b"\x9f", b"###"])) == "\ufffd###"


def test_an_unfinished_character_at_the_end_is_dropped() -> None:
    assert deltas([b"hi ", *LLAMA[:2]]) == ["hi "]


def test_text_before_a_stop_string_is_told_and_the_string_is_not() -> None:
    assert "".join(deltas([b"one", b" two ST", b"OP three"], "STOP")) == "one two "


def test_the_earliest_of_several_stop_strings_counts() -> None:
    assert "".join(deltas([b"a b c"], "c", "b")) == "a "


def test_what_was_held_for_a_stop_string_that_did_not_come_is_told() -> None:
    assert deltas([b"one S", b"TO", b"RE"], "STOP") == ["one ", "STORE"]
    assert deltas([b"one ST"], "STOP") == ["one ", "ST"]


def test_a_stop_string_may_begin_inside_a_failed_match() -> None:
    assert "".join(deltas([b"a", b"a", b"b", b"!"], "ab")) == "a"


def test_empty_stop_strings_are_ignored() -> None:
    assert deltas([b"text"], "") == ["text"]


@given(st.text(), st.lists(st.integers(1, 5)), st.lists(st.text(min_size=1, max_size=3), max_size=3))
def test_however_it_is_cut_the_text_is_the_same(text: str, cuts: list[int], stop: list[str]) -> None:
    data, pieces = text.encode(), []
    for size in (*cuts, len(data)):
        pieces.append(data[:size])
        data = data[size:]
    ends = [text.find(each) for each in stop if each in text]
    assert "".join(deltas(pieces, *stop)) == text[: min(ends, default=len(text))]
