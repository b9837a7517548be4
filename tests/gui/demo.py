"""Content for pictures: models, memory, rules and a conversation, all made up."""

import time

from laya_desktop.config.schema import Config
from laya_desktop.core.errors import ErrorCode, ErrorInfo
from laya_desktop.core.events import (
    Accepted,
    Delta,
    MemorySample,
    ModelStatus,
    Notice,
    QueueChanged,
    RequestEvent,
    Routed,
)
from laya_desktop.core.types import Candidate, ChatRequest, Decision, LoadedInfo, ModelInfo, ModelState
from tests.gui.fake_handle import finished

GIB = 1024**3

_ANSWER = """A map finds the node, a doubly linked list keeps the order. Two invariants hold after every call:

1. the list holds exactly the keys of the map;
2. the head is the most recently used key.

```go
type Cache[K comparable, V any] struct {
    cap   int
    items map[K]*node[K, V]
}
```

`Get` moves its node to the front, `Put` drops the node at the back once `len(items)` exceeds `cap`."""


def _info(size_gb: float, parameters: float, quantization: str, context: int) -> ModelInfo:
    return ModelInfo(
        architecture="llama",
        size_bytes=int(size_gb * GIB),
        parameters=int(parameters * 1e9),
        quantization=quantization,
        trained_context=context,
        has_chat_template=True,
    )


def models() -> tuple[ModelStatus, ...]:
    loaded = LoadedInfo(context_tokens=8192, max_streams=4, backend_version="1")
    lost = ErrorInfo(
        code=ErrorCode.MODEL_FILE_MISSING,
        message="/models/llama-70b-q4.gguf does not exist.",
        hint="Correct the path in config.yaml or put the file back.",
    )
    return (
        ModelStatus(
            name="qwen-0.5b",
            backend="gguf",
            path="/models/qwen2.5-0.5b-instruct-q8.gguf",
            state=ModelState.WARM,
            memory_bytes=int(0.8 * GIB),
            answers=148,
            info=_info(0.5, 0.49, "Q8_0", 32768),
            loaded=loaded,
        ),
        ModelStatus(
            name="coder-7b",
            backend="gguf",
            path="/models/coder-7b.gguf",
            state=ModelState.BUSY,
            streams=2,
            memory_bytes=int(6.8 * GIB),
            answers=212,
            info=_info(5.1, 7.6, "Q5_K_M", 131072),
            loaded=loaded,
        ),
        ModelStatus(
            name="deepseek-r1-distill-qwen-7b-with-a-rather-long-name",
            backend="gguf",
            path="/models/deepseek.gguf",
            state=ModelState.LOADING,
            progress=0.62,
            info=_info(5.4, 7.6, "Q5_K_M", 131072),
        ),
        ModelStatus(
            name="写作助手",
            backend="gguf",
            path="/models/writer.gguf",
            state=ModelState.COLD,
            info=_info(2.1, 3.1, "Q4_K_M", 32768),
        ),
        ModelStatus(
            name="llama-70b",
            backend="gguf",
            path="/models/llama-70b-q4.gguf",
            state=ModelState.COLD,
            error=lost,
        ),
    )


def config() -> Config:
    entries = [{"name": model.name, "path": model.path} for model in models()]
    rules = [
        {
            "name": "Code",
            "when": {"any": [{"task": "code"}, {"has_code": True}, {"keywords_any": ["traceback", "报错"]}]},
            "use": "coder-7b",
        },
        {
            "name": "Heavy work",
            "when": {
                "all": [{"task": "reasoning"}, {"max_chars": 24000}],
                "not": [{"caller": "quick_prompt"}],
            },
            "use": {"models": ["coder-7b", "qwen-0.5b"], "strategy": "priority"},
        },
        {
            "name": "Translate",
            "enabled": False,
            "when": {"keywords_any": ["translate", "翻译"]},
            "use": "写作助手",
        },
    ]
    router = {"fallback_models": ["qwen-0.5b"], "rules": rules}
    return Config.model_validate({"models": entries, "router": router})


def samples(now: float) -> list[MemorySample]:
    """Two minutes: a model loads after 40 s, goes at 75 s, another comes at 90 s."""
    result = []
    for second in range(121):
        held = {"qwen-0.5b": int(0.8 * GIB)}
        if 40 <= second < 75:
            held["deepseek"] = int(5.9 * GIB)
        if second >= 90:
            held["coder-7b"] = int(6.8 * GIB)
        used = int((14 + second % 30 / 40) * GIB) + sum(held.values())
        result.append(
            MemorySample(
                at=now - 120 + second,
                limit=32 * GIB,
                used=used,
                available=32 * GIB - used,
                reserved=4 * GIB,
                models=held,
            )
        )
    return result


def notices(now: float) -> list[Notice]:
    lines = (
        (90, "fallback", "llama-70b", "its file is missing; qwen-0.5b answered"),
        (45, "unloading", "deepseek", "idle for 9 min; 5.9 GB came back"),
        (28, "loaded", "coder-7b", "6.8 GB in 3.1 s"),
    )
    return [Notice(at=now - ago, kind=kind, model=model, text=text) for ago, kind, model, text in lines]


def queue() -> QueueChanged:
    return QueueChanged(running=2, waiting=1)


def code_decision() -> Decision:
    return Decision(
        model="coder-7b",
        rule="Code",
        reason="the task is code",
        task="code",
        candidates=(
            Candidate(model="coder-7b"),
            Candidate(model="qwen-0.5b"),
            Candidate(model="llama-70b", excluded="its file is missing"),
        ),
        elapsed_us=14.0,
    )


def answer(request: ChatRequest) -> list[RequestEvent]:
    pieces = [_ANSWER[start : start + 6] for start in range(0, len(_ANSWER), 6)]
    return [
        Routed(decision=code_decision()),
        Accepted(prompt_tokens=812, reused_tokens=0, context_tokens=8192),
        *(Delta(text=piece) for piece in pieces),
        finished(412, 812),
    ]


QUESTIONS = (
    "把这段话翻译成英文",
    "Weekend plan: three days in the mountains with the children",
    "Write an LRU cache with O(1) get and put, and explain the invariants.",
)


def now() -> float:
    return time.time()
