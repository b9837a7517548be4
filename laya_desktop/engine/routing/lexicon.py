"""Groups of words that betray what a prompt wants. They are in lexicon.txt, English and Chinese first."""

from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from importlib import resources


class Group(IntEnum):
    """Each is one bit of a mask. The weights file depends on the order."""

    CODE_NAME = 0
    CODE_THING = 1
    CODE_VERB = 2
    WRITE_VERB = 3
    WRITE_THING = 4
    STORY = 5
    LANGUAGE = 6
    TRANSLATE = 7
    SAY = 8
    MATH = 9
    QUANTITY = 10
    UNIT = 11
    LOGIC = 12
    YOU = 13
    SMALL_TALK = 14
    FACT = 15
    ME = 16
    HEDGE = 17
    CODE_SYNTAX = 18


@cache
def words() -> Mapping[Group, tuple[bytes | str, ...]]:
    """The tokens of each group as the scan makes them: bytes for scripts with blanks, text of one or two
    characters for those without. Longer Chinese words stand for their pairs of characters."""
    found: dict[Group, dict[bytes | str, None]] = {group: {} for group in Group}
    tokens = found[Group.CODE_NAME]
    text = resources.files(__package__).joinpath("lexicon.txt").read_text("utf-8")
    for line in text.splitlines():
        if line.startswith("["):
            tokens = found[Group[line.strip("[]").upper()]]
        elif not line.startswith("#"):
            for word in line.split():
                tokens |= dict.fromkeys(_tokens(word))
    return {group: tuple(tokens) for group, tokens in found.items()}


def _tokens(word: str) -> list[bytes | str]:
    if word[0] < "\u3040":
        return [word.encode()]
    return [word] if len(word) < 3 else [word[i : i + 2] for i in range(len(word) - 1)]
