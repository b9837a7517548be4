"""Training sentences made from our own lists: every template filled several times, and long prompts put
together from a wish, a pasted part and an ending, because real prompts are long and our templates are not."""

import random
import re
from pathlib import Path
from typing import NamedTuple

_HERE = Path(__file__).parent
_TASKS = ("chat", "code", "reasoning", "writing", "translation")
_LANGUAGES = {"english": "en", "chinese": "zh", "other": "other"}
_SLOT = re.compile(r"\{(\w+)\}")
_PER_TEMPLATE = 14
_LONG_PROMPTS = 260
_NAMES = ("value", "items", "data", "node", "user", "total", "path", "name", "rows", "index", "orders", "key")
_FUNCTIONS = (
    "process",
    "find_all",
    "solve",
    "get_data",
    "merge",
    "compute",
    "loadUsers",
    "handle",
    "parse_line",
)
_CLASSES = ("Account", "Parser", "OrderList", "Solution", "Player", "TodoView", "Server")


class Sample(NamedTuple):
    text: str
    task: str
    lang: str
    source: str


class _Book:
    """Sections of one language's file, and the filling of its slots."""

    def __init__(self, name: str, rng: random.Random) -> None:
        self.lang = _LANGUAGES[name]
        self._rng = rng
        self.sections: dict[str, list[str]] = {}
        lines: list[str] = []
        for line in (_HERE / f"{name}.txt").read_text("utf-8").splitlines():
            if line.startswith("[") and line.endswith("]"):
                lines = self.sections.setdefault(line[1:-1], [])
            elif line and not line.startswith("# "):
                lines.append(line.replace("\\n", "\n"))

    def draw(self, section: str) -> str:
        return self.fill(self._rng.choice(self.sections[section]))

    def fill(self, text: str) -> str:
        for _ in range(3):  # what fills a slot may have slots
            text = _SLOT.sub(self._value, text)
        return re.sub(r"  +", " ", text).strip(" ")

    def _value(self, match: re.Match[str]) -> str:
        values = self.sections.get(f"slot {match[1]}")
        return self._rng.choice(values[0].split("|")) if values else match[0]


def sentences(seed: int = 1) -> list[Sample]:
    """Some thousands of sentences; the same for the same seed."""
    rng = random.Random(seed)
    made: dict[str, Sample] = {}
    for name in _LANGUAGES:
        book = _Book(name, rng)
        for task in _TASKS:
            for template in book.sections[task]:
                for _ in range(_PER_TEMPLATE if "{" in template else 1):
                    text = _vary(book.fill(template), rng)
                    made.setdefault(text, Sample(text, task, book.lang, "own"))
        if "prose" in book.sections:
            for task in _TASKS:
                for _ in range(_LONG_PROMPTS):
                    text = _long(book, task, rng)
                    made.setdefault(text, Sample(text, task, book.lang, "own-long"))
    return list(made.values())


def _vary(text: str, rng: random.Random) -> str:
    """Sentence case, closing marks and the like, which people use or do not."""
    if rng.random() < 0.5:
        text = text[:1].upper() + text[1:]
    if text[-1:].isalpha() and text.isascii() and rng.random() < 0.3:
        text += rng.choice((".", ".", "!", "?"))
    elif rng.random() < 0.15:
        text = text.rstrip("?？.。")
    return text


def _long(book: _Book, task: str, rng: random.Random) -> str:
    parts = [book.draw(task)]
    if rng.random() < 0.35:
        parts.insert(0, book.draw("preamble"))
    if task == "code":
        if rng.random() < 0.7:
            code = "\n".join(_snippet(rng) for _ in range(rng.randint(1, 3)))
            parts.insert(rng.randint(0, len(parts)), f"```\n{code}\n```" if rng.random() < 0.3 else code)
        if rng.random() < 0.6:
            parts.insert(rng.randint(0, len(parts)), _prose(book, "prose code", rng))
    elif task == "reasoning":
        parts = [book.draw("statement") for _ in range(rng.randint(1, 3))] + parts[-1:]
    elif rng.random() < 0.9:
        parts.insert(rng.randint(len(parts) - 1, len(parts)), _prose(book, "prose", rng))
    if rng.random() < 0.4:
        parts.append(book.draw(f"ending {task}"))
    return rng.choice((" ", "\n", "\n\n")).join(parts)


def _prose(book: _Book, section: str, rng: random.Random) -> str:
    return (" " if book.lang == "en" else "").join(book.draw(section) for _ in range(rng.randint(1, 7)))


def _snippet(rng: random.Random) -> str:
    code = rng.choice((_HERE / "snippets.txt").read_text("utf-8").split("\n===\n"))
    variable, other = rng.sample(_NAMES, 2)
    names = {"v": variable, "w": other, "f": rng.choice(_FUNCTIONS), "C": rng.choice(_CLASSES)}
    return re.sub(r"\{([vwfC])\}", lambda match: names[match[1]], code)


def traditional() -> dict[str, str]:
    """Simplified characters and their traditional forms."""
    pairs: dict[str, str] = {}
    for line in (_HERE / "traditional.txt").read_text("utf-8").split("\n"):
        simple, _, full = line.partition(" ")
        pairs |= dict(zip(simple, full, strict=True))
    return pairs
