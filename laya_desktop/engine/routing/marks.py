"""Marks in a text: characters and neighbouring characters that betray code, mathematics or choices.

All are found in one vectorised pass, whatever their number: bytes become classes of bytes, a pair of classes
becomes the bits of the marks that it stands for, and the bits of all pairs are joined.
"""

import numpy as np

# One bit each, in this order. 0 stands for any digit.
_SINGLE = (
    "{",
    "}",
    ";",
    "`",
    "\t",
    "\\",
    "$",
    "#",
    "_",
    "<",
    "=",
    "|",
    "^",
    "*",
    "/",
    "@",
    "[",
    "(",
    '"',
    ":",
    "%",
    "+",
)
_PAIRS = (
    *(
        "()",
        "):",
        ");",
        "{\n",
        "}\n",
        ";\n",
        "=>",
        "->",
        "==",
        "!=",
        "+=",
        "&&",
        "||",
        "</",
        "/>",
        "[]",
        "\n\t",
    ),
    *("__", "$(", " =", '("', "('", '":', "::", "--", "//", ":/", "  "),
    *("\\(", "$$", "^0", "^{", "_{", "0x", "0+", "0=", "=0"),
)
MATHS_MARK, DASHES_MARK, CHOICE_MARK, LINE_CHOICE_MARK = range(len(_SINGLE) + len(_PAIRS), 63)[:4]
COUNT = LINE_CHOICE_MARK + 1

_ALTERNATIVES: dict[int, tuple[bytes, ...]] = {
    # ∑ √ ≤ and their like are U+2200 to U+227F; then π × ÷ ² ³, and LaTeX, where "a" is any other letter.
    MATHS_MARK: (
        b"\\a",
        b"\\b",
        b"\\c",
        b"\\d",
        b"\\x",
        b"\xe2\x88",
        b"\xe2\x89",
        b"\xcf\x80",
        b"\xc3\x97",
        b"\xc3\xb7",
        b"\xc2\xb2",
        b"\xc2\xb3",
    ),
    DASHES_MARK: (b"\xe2\x80",),
    CHOICE_MARK: (b"b)", b"c)", b"d)"),
    LINE_CHOICE_MARK: (b"\nb", b"\nc", b"\nd"),
}

_CODE = (
    "()",
    "):",
    ");",
    "{\n",
    "}\n",
    ";\n",
    "=>",
    "->",
    "==",
    "!=",
    "+=",
    "&&",
    "||",
    "</",
    "/>",
    "[]",
    "\n\t",
)
_MORE_CODE = ("__", "$(", '("', "('", '":', "::", "//")
_LATEX = ("\\(", "$$", "^0", "^{", "_{")


def _bit(mark: str) -> int:
    return 1 << (_SINGLE.index(mark) if mark in _SINGLE else len(_SINGLE) + _PAIRS.index(mark))


CODE = sum(_bit(mark) for mark in (*_CODE, *_MORE_CODE))
"""Bits of the marks of which prose has none or few."""

MAYBE_CODE = CODE | sum(_bit(mark) for mark in ("(", "=", "{", "[", "<"))
"""Bits of which code has at least one."""

MATHS = sum(_bit(mark) for mark in _LATEX) | 1 << MATHS_MARK
SUMS = sum(_bit(mark) for mark in ("0x", "0+", "0=", "=0"))
CHOICES = 1 << CHOICE_MARK | 1 << LINE_CHOICE_MARK
URL = _bit(":/")
FENCE = _bit("`")
QUOTE = _bit('"') | 1 << DASHES_MARK
COLON = _bit(":")
BRACKET = _bit("(")


def _classes() -> bytes:
    """A small number for every byte: 0 for what no mark speaks of."""
    own = dict.fromkeys(byte for mark in (*_SINGLE, *_PAIRS) for byte in mark.encode())
    own |= dict.fromkeys(byte for pairs in _ALTERNATIVES.values() for pair in pairs for byte in pair)
    number = {byte: index for index, byte in enumerate(own, 1)}
    digits = dict.fromkeys(b"0123456789", number[ord("0")])
    letters = dict.fromkeys(b"abcdefghijklmnopqrstuvwxyz", number[ord("a")])
    number = letters | number | digits
    return bytes(number.get(byte, 0) for byte in range(256))


_CLASS = _classes()
_SIZE = np.uint16(64)


def _bits() -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    bits = np.zeros((64, 64), np.int64)
    for index, mark in enumerate(_SINGLE):
        bits[_CLASS[ord(mark)]] |= 1 << index
    for index, mark in enumerate(_PAIRS, len(_SINGLE)):
        bits[_CLASS[ord(mark[0])], _CLASS[ord(mark[1])]] |= 1 << index
    for index, pairs in _ALTERNATIVES.items():
        for first, second in pairs:
            bits[_CLASS[first], _CLASS[second]] |= 1 << index
    return bits.reshape(-1)


assert max(_CLASS) < 64
_BITS = _bits()


def find(raw: bytes) -> int:
    """The bits of the marks that a text in UTF-8 has."""
    classes = np.frombuffer((raw + b" ").translate(_CLASS), np.uint8)
    if len(classes) < 2:
        return 0
    pairs = classes[:-1] * _SIZE
    pairs += classes[1:]
    return int(np.bitwise_or.reduce(_BITS.take(pairs)))
