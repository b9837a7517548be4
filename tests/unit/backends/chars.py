"""A tokenizer without a model: one token per character, and special tokens by name."""

from collections.abc import Sequence

from laya_desktop.backends.common.chat_template import SpecialToken


class CharTokenizer:
    """Ids of characters are their code points. Like llama.cpp, plain tokenising still finds those special
    tokens that are marked so."""

    def __init__(self, *special: SpecialToken, bos: int | None = None, adds_bos: bool = False) -> None:
        self.special_tokens: Sequence[SpecialToken] = special
        self.bos = bos
        self.eos = None
        self.adds_bos = adds_bos

    def text_of(self, token: int) -> str:
        return next(special.text for special in self.special_tokens if special.id == token)

    def tokenise(self, text: str, *, parse_special: bool = False) -> list[int]:
        ids: list[int] = []
        while text:
            found = [
                special
                for special in self.special_tokens
                if text.startswith(special.text) and (parse_special or special.matched_in_plain)
            ]
            longest = max(found, key=lambda special: len(special.text), default=None)
            ids.append(longest.id if longest else ord(text[0]))
            text = text[len(longest.text) if longest else 1 :]
        return ids
