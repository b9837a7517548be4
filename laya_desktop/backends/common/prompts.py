"""Prompts in the making: chats become token ids in a helper thread, while the streams go on.

What cannot fit the context is refused by its size, before a template or a tokenizer sees it.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np

from laya_desktop.backends.common.chat_template import ChatTemplate
from laya_desktop.core.errors import ErrorCode, LayaError
from laya_desktop.core.types import Message, Role, Sampling

_PATIENCE_S = 0.005
"""How long the streams wait for a new prompt: the usual one is ready by then and joins the next step."""


class TokenBound:
    """How few tokens a text can have, from what the tokens of a vocabulary spell: no token is longer than
    the longest, and none has more of one byte than the one that has most of it. Holds for tokenizers that
    change nothing in a text but its white space."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        most = [0] * 256
        self._longest = 1
        for piece in pieces:
            self._longest = max(self._longest, len(piece))
            for byte in set(piece):
                most[byte] = max(most[byte], piece.count(byte))
        # One unknown token may stand for a whole character, and bytes of no token may vanish.
        most[0x80:] = [max(count, 3) for count in most[0x80:]]
        self._most = np.array([count or np.inf for count in most])

    def at_least(self, data: bytes) -> int:
        """A number of tokens that a text of these bytes has at least."""
        counts = np.bincount(np.frombuffer(data, np.uint8), minlength=256)
        return int(np.ceil(max(len(data) / self._longest, float((counts / self._most).max()))))


@dataclass(slots=True, eq=False)
class Encoding:
    """The prompt of one request, ready once `prompt` is done, with its token ids or a LayaError."""

    id: str
    sampling: Sampling
    prompt: "Future[list[int]]"


class PromptEncoder:
    """Encodes in one thread of its own, first come, first served. Its methods are called from the worker's
    main thread; the template, the vocabulary's `tokenise` and `pieces` (what each token spells) are used in
    the helper's only."""

    def __init__(
        self, template: ChatTemplate, pieces: Callable[[], Iterable[bytes]], context_tokens: int
    ) -> None:
        self._template = template
        self._pieces = pieces
        self._context_tokens = context_tokens
        self._bound: TokenBound | None = None
        self._pending: list[Encoding] = []
        self._helper = ThreadPoolExecutor(1, thread_name_prefix="prompts")

    @property
    def has_work(self) -> bool:
        return bool(self._pending)

    def start(self, request_id: str, messages: Sequence[Message], sampling: Sampling) -> None:
        """Begin; `ready` hands the result over. Waits for a moment, which usually suffices."""
        prompt = self._helper.submit(self._encode, messages)
        self._pending.append(Encoding(request_id, sampling, prompt))
        wait([prompt], _PATIENCE_S)

    def cancel(self, request_id: str) -> bool:
        """Forget a prompt; False if it is not here. If it is being encoded, nobody gets the result."""
        for encoding in self._pending:
            if encoding.id == request_id:
                self._pending.remove(encoding)
                encoding.prompt.cancel()
                return True
        return False

    def ready(self, wait_s: float) -> list[Encoding]:
        """Hand over what is done, in the order of arrival; if there is none, wait so long for one."""
        if not self._pending:
            return []
        wait([encoding.prompt for encoding in self._pending], wait_s, FIRST_COMPLETED)
        done = [encoding for encoding in self._pending if encoding.prompt.done()]
        self._pending = [encoding for encoding in self._pending if encoding not in done]
        return done

    def close(self) -> None:
        """Returns when the helper no longer uses the vocabulary."""
        self._pending.clear()
        self._helper.shutdown(cancel_futures=True)

    # In the helper thread

    def _encode(self, messages: Sequence[Message]) -> list[int]:
        least = self._at_least(messages)
        if least >= self._context_tokens:
            raise self._too_long(f"at least {least}")
        enough = 2 * self._context_tokens  # beyond, nobody needs to know by how much a chat is too long
        prompt = self._template.encode(messages, enough)
        if not prompt:
            raise LayaError(ErrorCode.INVALID_REQUEST, "The prompt is empty.", param="messages")
        if len(prompt) >= self._context_tokens:
            raise self._too_long(f"{'at least ' if len(prompt) > enough else ''}{len(prompt)}")
        return prompt

    def _at_least(self, messages: Sequence[Message]) -> int:
        """How many tokens the prompt will have at least, as far as that can be seen cheaply."""
        if self._template.problem:
            return 0
        if len(messages) > self._context_tokens:
            return len(messages)
        texts = [_surely_told(message) for message in messages]
        if sum(map(len, texts)) * 4 < self._context_tokens:  # no token is shorter than a byte
            return 0
        data = "".join(texts).encode("utf-8", "replace")
        if len(data) < self._context_tokens:
            return 0
        if self._bound is None:  # takes longer than loading a small model may
            self._bound = TokenBound(self._pieces())
        return self._bound.at_least(data)

    def _too_long(self, tokens: str) -> LayaError:
        return LayaError(
            ErrorCode.CONTEXT_LENGTH_EXCEEDED,
            f"The prompt has {tokens} tokens and the context holds {self._context_tokens},"
            " the answer included.",
            hint="Shorten the chat, or give the model a larger context.",
            param="messages",
        )


def _surely_told(message: Message) -> str:
    """The part of a message that templates print: many trim it, and drop what a model thought before it
    answered."""
    content = message.content
    if message.role == Role.ASSISTANT:
        content = content.rpartition("</think>")[2]
    return content.strip()
