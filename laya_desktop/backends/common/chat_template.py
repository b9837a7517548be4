"""From a chat to token ids: the model's own template, with nobody's text taken for a command.

A model reads markers such as ``<|im_start|>`` as single tokens, and so would it if a user typed them. Only
markers that the template itself prints may become those tokens. Text of messages goes through the template
in disguise (see `_Disguise`), the result is cut at the markers that are left, and what lies between them is
tokenised as plain text.
"""

import bisect
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import jinja2

from laya_desktop.backends.common.template_sandbox import TemplateSandbox, render, time_limit
from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.core.types import Message, Role

_HINT = "Set `chat_template:` for this model in config.yaml to the template from the model's page."
_PRIVATE_USE = range(0xF0000, 0x10FFFE)
_SPACE = " \t\n\v\f\r"
_MAX_NESTING = 20
"""Of groups in a pattern: the module that compiles it is recursive."""


@dataclass(frozen=True, slots=True)
class SpecialToken:
    """A token that stands for a marker. `matched_in_plain` tokens are recognised in plain text as well;
    `strips_left` and `strips_right` ones swallow white space next to them."""

    id: int
    text: str
    matched_in_plain: bool = False
    strips_left: bool = False
    strips_right: bool = False


class Tokenizer(Protocol):
    """What this module needs of a model's vocabulary."""

    @property
    def special_tokens(self) -> Sequence[SpecialToken]: ...

    @property
    def bos(self) -> int | None: ...

    @property
    def eos(self) -> int | None: ...

    @property
    def adds_bos(self) -> bool:
        """The model wants every prompt to begin with `bos`."""
        ...

    def text_of(self, token: int) -> str: ...

    def tokenise(self, text: str, *, parse_special: bool = False) -> list[int]:
        """Token ids of `text`, without anything added around them."""
        ...


class ChatTemplate:
    """The compiled template of one model. A broken or missing one is reported by `encode`, not here: the
    model can be loaded all the same."""

    def __init__(self, source: str | None, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._source = source or ""
        self._markers = _Markers(tokenizer.special_tokens)
        self._plain_markers = _Markers(t for t in tokenizer.special_tokens if t.matched_in_plain)
        self._variables = {
            "bos_token": tokenizer.text_of(tokenizer.bos) if tokenizer.bos is not None else "",
            "eos_token": tokenizer.text_of(tokenizer.eos) if tokenizer.eos is not None else "",
        }
        self._template: jinja2.Template | None = None
        self.problem: LayaError | None = None
        """Why nothing can be encoded, if so."""
        if not source:
            self.problem = _error(
                "This model comes without a chat template, so it cannot be used for chat.", hint=_HINT
            )
            return
        try:
            self._template = TemplateSandbox().from_string(source)
        except jinja2.TemplateSyntaxError as error:
            self.problem = _error(
                f"Line {error.lineno} of the model's chat template: {error.message}.", hint=_HINT
            )
        except Exception as error:  # a template can make the compiler fail in any way, deep nesting for one
            self.problem = _error(
                f"The model's chat template cannot be read: {type(error).__name__}.", hint=_HINT
            )

    def encode(self, messages: Sequence[Message], enough: int = sys.maxsize) -> list[int]:
        """Token ids of the prompt that asks for the next answer, with at most one BOS. If there are more than
        `enough`, some at the end may be left out.

        Raises LayaError (CHAT_TEMPLATE_ERROR) if the template is broken or refuses the chat.
        """
        disguise = _Disguise(self._markers, messages)
        turns = [
            {"role": str(message.role), "content": disguise.put_on(message.content)} for message in messages
        ]
        ids = self._tokenise(self._render_all(turns), disguise, enough)
        bos = self._tokenizer.bos
        if self._tokenizer.adds_bos and bos is not None and ids[:1] != [bos]:
            ids.insert(0, bos)
        return ids

    def _render_all(self, turns: list[dict[str, str]]) -> str:
        """Render so that nothing is lost: a system text moves into the first user turn where the template
        has no place for it, and a tool result that would vanish is an error. Rendering costs the other
        streams their time, so it is done no more often than it takes to know that."""
        deadline = time_limit()
        try:
            text = self._render(turns, deadline)
            self._check_told(Role.SYSTEM, turns, text, deadline)
        except LayaError:
            if self.problem or all(turn["role"] != Role.SYSTEM for turn in turns):
                raise
            turns = _folded(turns)
            text = self._render(turns, deadline)
        self._check_told(Role.TOOL, turns, text, deadline)
        return text

    def _check_told(self, role: Role, turns: list[dict[str, str]], text: str, deadline: float) -> None:
        """Raise if what the turns of `role` say makes no difference to `text`."""
        said = [turn["content"].strip() for turn in turns if turn["role"] == role]
        others = [self._source, *(turn["content"] for turn in turns if turn["role"] != role)]
        if not any(said) or any(_comes_from(content, text, others) for content in said):
            return
        blanked = [{**turn, "content": ""} if turn["role"] == role else turn for turn in turns]
        if text == self._render(blanked, deadline):
            raise _error(f"The model's chat template has no place for {role} messages.")

    def _render(self, turns: list[dict[str, str]], deadline: float) -> str:
        if self._template is None:
            assert self.problem
            raise self.problem
        try:
            return render(
                self._template,
                {"messages": turns, "add_generation_prompt": True, "tools": None, **self._variables},
                deadline,
            )
        except jinja2.TemplateError as error:
            raise _error(f"The model's chat template refuses this chat: {error.message}.") from error
        except Exception as error:
            raise _error(
                f"The model's chat template fails on this chat: {type(error).__name__}: {error}."
            ) from error

    def _tokenise(self, rendered: str, disguise: "_Disguise", enough: int) -> list[int]:
        ids: list[int] = []
        start = 0
        left: SpecialToken | None = None
        for at, token in self._markers.tokens_in(rendered):
            ids += self._fragment(disguise.take_off(rendered[start:at]), left, token)
            ids.append(token.id)
            if len(ids) > enough:
                return ids
            start, left = at + len(token.text), token
        return ids + self._fragment(disguise.take_off(rendered[start:]), left, None)

    def _fragment(self, text: str, left: SpecialToken | None, right: SpecialToken | None) -> list[int]:
        """Plain text between two special tokens. A marker in it was typed by someone: where plain
        tokenising would still find it, cut after its first character."""
        if left and left.strips_right:
            text = text.lstrip(_SPACE)
        if right and right.strips_left:
            text = text.rstrip(_SPACE)
        cuts = [at + 1 for at in self._plain_markers.starts_in(text)]
        ids: list[int] = []
        for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
            if begin < end:
                ids += self._tokenizer.tokenise(text[begin:end])
        return ids


class _Markers:
    """Finds the texts of special tokens. White space and single characters are no markers: they are text
    that happens to have a token of its own."""

    def __init__(self, tokens: Iterable[SpecialToken]) -> None:
        self._by_text = {t.text: t for t in tokens if len(t.text) > 1 and not t.text.isspace()}
        self._sorted = sorted(self._by_text)
        self._longest = max(map(len, self._by_text), default=0)
        pattern = _longest_of(self._sorted) if self._by_text else r"(?!)"
        self._marker = re.compile(pattern)
        # The first character alone, so that overlapping markers are found as well.
        self._start = re.compile(rf"(?=(?:{pattern}))(?s:.)")
        firsts = "".join(sorted({text[0] for text in self._by_text}))
        self._candidate = re.compile(f"[{re.escape(firsts)}]" if firsts else r"(?!)")

    def tokens_in(self, text: str) -> Iterator[tuple[int, SpecialToken]]:
        """The markers one after the other, the longest at each place, with their position."""
        for match in self._marker.finditer(text):
            yield match.start(), self._by_text[match[0]]

    def starts_in(self, text: str) -> list[int]:
        """Every position where a marker begins, overlapping ones as well."""
        return [match.start() for match in self._start.finditer(text)]

    def starts_at_end(self, text: str) -> list[int]:
        """Every position from which the rest of `text` is the beginning of a marker: more text after it
        could complete one."""
        tail = max(0, len(text) - self._longest + 1)
        return [m.start() for m in self._candidate.finditer(text, tail) if self._begins(text[m.start() :])]

    def _begins(self, rest: str) -> bool:
        place = bisect.bisect_left(self._sorted, rest)
        return place < len(self._sorted) and self._sorted[place].startswith(rest)


def _longest_of(texts: Sequence[str], depth: int = 0) -> str:
    """A pattern for the longest of `texts` that fits. What several begin with is written once, so that a
    search looks at each of its characters once, however many texts there are."""
    if depth == _MAX_NESTING:
        return "|".join(re.escape(text) for text in sorted(texts, key=len, reverse=True))
    branches: dict[str, list[str]] = {}
    for text in texts:
        branches.setdefault(text[:1], []).append(text)
    parts = []
    for first in sorted(branches, reverse=True):  # the empty one last
        common = os.path.commonprefix(branches[first])  # noqa: RUF071 (of texts, not of paths)
        rests = [text[len(common) :] for text in branches[first]]
        parts.append(re.escape(common) + (f"(?:{_longest_of(rests, depth + 1)})" if len(rests) > 1 else ""))
    return "|".join(parts)


class _Disguise:
    """Hides markers in the texts of one chat from the template and from the search for markers.

    The first character of each typed marker is swapped for a private-use character that no text contains,
    one for each first character, and swapped back after the search. So is the beginning of a marker at the
    end of a text, since the template may print its completion next to it.
    """

    def __init__(self, markers: _Markers, messages: Sequence[Message]) -> None:
        self._markers = markers
        used = set().union(*(message.content for message in messages))
        self._free = (chr(code) for code in _PRIVATE_USE if chr(code) not in used)
        self._masks: dict[str, str] = {}

    def put_on(self, text: str) -> str:
        places = {*self._markers.starts_in(text), *self._markers.starts_at_end(text)}
        if not places:
            return text
        masked = list(text)
        for at in places:
            masked[at] = self._mask(text[at])
        return "".join(masked)

    def take_off(self, text: str) -> str:
        if not self._masks:
            return text
        return text.translate({ord(mask): character for character, mask in self._masks.items()})

    def _mask(self, character: str) -> str:
        if character not in self._masks:
            mask = next(self._free, None)
            if mask is None:
                raise _error("The chat uses every private-use character there is.")
            self._masks[character] = mask
        return self._masks[character]


def _comes_from(content: str, text: str, others: Sequence[str]) -> bool:
    """Whether `content` is in `text` and can be there from nowhere else."""
    return bool(content) and content in text and not any(content in other for other in others)


def _folded(turns: list[dict[str, str]]) -> list[dict[str, str]]:
    """All system texts at the head of the first user turn, and neighbours of one role made one turn: such
    templates want roles to alternate."""
    system = [turn["content"] for turn in turns if turn["role"] == Role.SYSTEM]
    others = [turn for turn in turns if turn["role"] != Role.SYSTEM]
    first_user = next((i for i, turn in enumerate(others) if turn["role"] == Role.USER), 0)
    others[first_user:first_user] = [{"role": str(Role.USER), "content": text} for text in system if text]
    folded: list[dict[str, str]] = []
    for turn in others:
        if folded and folded[-1]["role"] == turn["role"]:
            folded[-1] = {**turn, "content": f"{folded[-1]['content']}\n\n{turn['content']}"}
        else:
            folded.append(turn)
    return folded


def _error(message: str, *, hint: str = "") -> LayaError:
    return LayaError(ErrorCode.CHAT_TEMPLATE_ERROR, message, hint=hint)
