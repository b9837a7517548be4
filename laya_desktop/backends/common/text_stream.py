"""Text from tokens: whole characters only, and an end at the first stop string."""

import codecs
from collections.abc import Sequence


class TextStream:
    """Turns the bytes of one answer's tokens into text that may be shown.

    Tokens end inside characters, and a stop string may arrive in parts: what could still become either is
    held back. Bytes that can no longer become a character turn into U+FFFD; an unfinished character at the
    end of the answer is dropped.
    """

    def __init__(self, stop: Sequence[str] = ()) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._stop = tuple(text for text in stop if text)
        self._held = ""
        self.stopped = False
        """A stop string was met; nothing more comes out."""

    def feed(self, piece: bytes) -> str:
        """Take the bytes of the next token and give the text that is certain by now, often empty."""
        text = self._decoder.decode(piece)
        if not self._stop or not text:
            return text
        text = self._held + text
        found = [at for at in map(text.find, self._stop) if at >= 0]
        if found:
            self.stopped = True
            self._held = ""
            return text[: min(found)]
        keep = len(text) - max(_overlap(text, stop) for stop in self._stop)
        self._held = text[keep:]
        return text[:keep]

    def finish(self) -> str:
        """Give what was held for a stop string that did not come."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that `stop` begins with."""
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0
