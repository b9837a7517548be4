"""Values that every layer speaks. All are immutable and may be passed between threads and processes."""

from enum import StrEnum
from typing import Literal

import msgspec

AUTO_MODEL = "auto"
"""The model name that asks the router to choose."""
TASKS = ("chat", "code", "reasoning")
"""What a prompt may ask for, as far as the router tells prompts apart."""


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Message(msgspec.Struct, frozen=True):
    """One turn. `content` is plain text; markers typed into it never become special tokens."""

    role: Role
    content: str


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How tokens are drawn. A setting at its neutral value adds no sampler to the chain.

    `temperature` 0 is greedy. `top_k` 0, `top_p` 1, `min_p` 0, penalties 1 / 0 / 0 are off.
    `seed` None draws one. `max_tokens` None means until the context is full.
    """

    temperature: float = 0.7
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()


class Caller(StrEnum):
    CHAT = "chat"
    QUICK_PROMPT = "quick_prompt"
    API = "api"
    CLI = "cli"


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the window, the server, the tray and the command line all submit. `id` is unique per request.

    `task` (one of `TASKS`) is set by callers who know what the prompt asks for; None lets the router see.
    """

    id: str
    messages: tuple[Message, ...]
    model: str = AUTO_MODEL
    sampling: Sampling = msgspec.field(default_factory=Sampling)
    caller: Caller = Caller.API
    conversation_id: str | None = None
    task: str | None = None


KvType = Literal["f16", "q8_0", "q4_0"]


class LoadSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker needs to load one model.

    The KV pool holds `max_streams` × `context_tokens` tokens and never grows; `kv_type` is how a cell stores
    keys and values. `gpu_layers` -1 means all.
    `chat_template` overrides the model's own (jinja2 source).
    """

    name: str
    backend: str
    path: str
    context_tokens: int
    max_streams: int
    threads: int
    gpu_layers: int = 0
    kv_type: KvType = "f16"
    chat_template: str | None = None


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a model file says of itself, read without loading it. `size_bytes` sums all parts."""

    architecture: str
    size_bytes: int
    parameters: int | None = None
    quantization: str | None = None
    trained_context: int | None = None
    has_chat_template: bool = False
    title: str | None = None


class MemoryEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that a model will need once it is loaded and its context is full, by kind and place. `weights`
    are pages of its mapped files, which workers of the same file share; `repacked` are private copies of
    weights in the order that the processor likes; `base` is the worker process itself. `exact` is False where
    the file does not say enough and its size was taken as a measure."""

    weights: int
    kv: int
    compute: int
    base: int
    repacked: int = 0
    gpu_weights: int = 0
    gpu_kv: int = 0
    gpu_compute: int = 0
    exact: bool = True

    @property
    def ram(self) -> int:
        return self.weights + self.repacked + self.kv + self.compute + self.base

    @property
    def vram(self) -> int:
        return self.gpu_weights + self.gpu_kv + self.gpu_compute


class LoadedInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker reports once its model is warm. `context_tokens` is per stream."""

    context_tokens: int
    max_streams: int
    backend_version: str


class ModelState(StrEnum):
    """cold → loading → warm ⇄ busy → unloading → cold, and failed."""

    COLD = "cold"
    LOADING = "loading"
    WARM = "warm"
    BUSY = "busy"
    UNLOADING = "unloading"
    FAILED = "failed"


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Token counts. `reused_tokens` of the prompt were already in the KV cache and not computed again."""

    prompt_tokens: int
    completion_tokens: int
    reused_tokens: int = 0


class Timings(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds inside the worker. `prefill_ms` covers `prompt_tokens - reused_tokens` tokens,
    `decode_ms` the tokens after the first."""

    prefill_ms: float
    decode_ms: float


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A model the router looked at. `excluded` says why it was not eligible; empty if it was. `score` is what
    the strategy compared (lower is better), `predicted_s` the expected seconds until the whole answer is
    there; both are None where nobody asked for them."""

    model: str
    excluded: str = ""
    score: float | None = None
    predicted_s: float | None = None


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Which model answers and why. `rule` is a rule's name, or `named`, `conversation`, `task:…`, `default`,
    `fallback`. `confidence` is the probability of `task`, `elapsed_us` the router's own time in microseconds.
    """

    model: str
    rule: str
    reason: str
    task: str
    candidates: tuple[Candidate, ...]
    elapsed_us: float
    confidence: float | None = None


class RuleOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one rule: `off`, `no match`, `no usable model`, `set aside` (it holds, but the
    conversation stays), `not reached` (it holds, but an earlier rule decided) or `decides`."""

    rule: str
    outcome: str


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """How a decision came about. `features` are those of the router by name; `predicted_s` and `score` of the
    candidates are filled in wherever they can be told. `strategy` chose among the candidates."""

    decision: Decision
    features: dict[str, str | int | float | bool]
    rules: tuple[RuleOutcome, ...]
    strategy: str
    previous_model: str | None = None
