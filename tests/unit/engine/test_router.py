"""The router's choices, with and without rules."""

from collections.abc import Sequence

import msgspec
import pytest

from laya_desktop.config.schema import Condition, ModelEntry, RouterConfig, Rule
from laya_desktop.core.errors import ErrorCode, ErrorInfo, LayaError
from laya_desktop.core.events import ModelStatus
from laya_desktop.core.types import ChatRequest, Message, ModelInfo, ModelState, Role
from laya_desktop.engine.history import History
from laya_desktop.engine.routing.conversations import Conversations
from laya_desktop.engine.routing.features import extract
from laya_desktop.engine.routing.router import Router
from laya_desktop.engine.routing.situation import Situation

NOW = 1_000_000.0
SIZES = {"small": 500, "coder-7b": 5000, "large": 8000}


def _models(**changes: ModelStatus) -> list[ModelStatus]:
    return [changes.get(name) or _status(name) for name in SIZES]


def _status(name: str, error: ErrorInfo | None = None, template: bool = True) -> ModelStatus:
    info = ModelInfo(architecture="llama", size_bytes=SIZES[name], has_chat_template=template)
    return ModelStatus(name=name, backend="gguf", path="", state=ModelState.COLD, info=info, error=error)


def _request(*texts: str, model: str = "auto", role: Role = Role.USER) -> ChatRequest:
    return ChatRequest(id="r", model=model, messages=tuple(Message(role, text) for text in texts))


def _router(config: RouterConfig, entries: Sequence[ModelEntry] = ()) -> Router:
    return Router(config, entries, History(), Conversations())


def _situation(models: list[ModelStatus] | None = None) -> Situation:
    return Situation({m.name: m for m in (_models() if models is None else models)}, NOW)


def _choose(text: str, config: RouterConfig | None = None, models: list[ModelStatus] | None = None) -> str:
    entries = [ModelEntry(name=n, path=f"/{n}.gguf", tags=("t",), aliases=(f"{n}-alias",)) for n in SIZES]
    router = _router(config or RouterConfig(), entries)
    return router.decide(_request(text), _situation(models))[0].model


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("hi, how are you?", "small"),
        ("今天天气怎么样", "small"),
        ("def add(a, b): what is wrong here?", "coder-7b"),
        ("帮我重构这个模块", "coder-7b"),
        ("Prove that the square root of 2 is irrational.", "large"),
        ("word " * 400, "large"),
        ("", "small"),
    ],
)
def test_light_prompts_go_to_the_small_model(text: str, model: str) -> None:
    assert _choose(text) == model


def test_rules_come_first_in_their_order() -> None:
    config = RouterConfig(
        rules=(
            Rule(name="off", enabled=False, use="small"),
            Rule(
                name="poems",
                when=Condition(
                    all=(
                        Condition(keywords_any=("poem",)),
                        Condition.model_validate({"not": {"task": "code"}}),
                    )
                ),
                use="large",
            ),
            Rule(name="rest", use={"tag": "t"}),
        )
    )
    assert _choose("write a poem", config) == "large"
    assert _choose("hello", config) == "small"


def test_a_rule_whose_models_are_unusable_is_passed_over() -> None:
    broken = ErrorInfo(code=ErrorCode.MODEL_FILE_MISSING, message="gone")
    config = RouterConfig(rules=(Rule(name="all", use="large"),))
    assert _choose("hello", config, _models(large=_status("large", broken))) == "small"


def test_rules_and_fallbacks_may_use_aliases() -> None:
    assert _choose("hello", RouterConfig(rules=(Rule(name="all", use="large-alias"),))) == "large"
    entries = [ModelEntry(name="large", path="/l.gguf", aliases=("big",))]
    router = _router(RouterConfig(fallback_models=("big",)), entries)
    decision, _ = router.decide(_request("hello", model="big"), _situation())
    assert decision.model == "large"
    failure = ErrorInfo(code=ErrorCode.WORKER_CRASHED, message="gone")
    fallback = router.fall_back(decision, ["small"], _situation(), failure)
    assert fallback is not None
    assert fallback.model == "large"


@pytest.mark.parametrize(("retry_at", "model"), [(NOW + 1, "coder-7b"), (NOW - 1, "small"), (None, "small")])
def test_a_model_that_failed_is_chosen_again_when_its_time_has_come(
    retry_at: float | None, model: str
) -> None:
    failure = ErrorInfo(code=ErrorCode.WORKER_CRASHED, message="it died")
    failed = msgspec.structs.replace(_status("small", failure), state=ModelState.FAILED, retry_at=retry_at)
    assert _choose("hello", models=_models(small=failed)) == model


def test_a_base_model_without_template_is_not_chosen() -> None:
    assert _choose("hello", models=_models(small=_status("small", template=False))) == "coder-7b"


def test_no_model_is_a_typed_error() -> None:
    with pytest.raises(LayaError) as caught:
        _choose("hello", models=[])
    assert caught.value.info.code is ErrorCode.MODEL_NOT_FOUND


def test_requests_without_a_user_turn_are_routed_too() -> None:
    router = _router(RouterConfig())
    decision, _ = router.decide(_request("be brief", role=Role.SYSTEM), _situation())
    assert decision.model == "small"
    assert len(decision.candidates) == 3


def test_a_long_prompt_is_scanned_at_its_ends_only() -> None:
    features = extract(_request("a" * 100_000 + " def f(x): return x"))
    assert features.has_code
    assert features.chars > 100_000
    assert len(features.text) < 1100


def test_a_prompt_that_did_not_fit_falls_back_to_a_larger_context_only() -> None:
    entries = [
        ModelEntry(name=name, path=f"/{name}.gguf", context_tokens=context)
        for name, context in {"small": 2048, "coder-7b": 1024, "large": 4096}.items()
    ]
    router = _router(RouterConfig(fallback_models=("coder-7b", "large")), entries)
    decision, _ = router.decide(_request("hello", model="small"), _situation())
    failure = ErrorInfo(code=ErrorCode.CONTEXT_LENGTH_EXCEEDED, message="too long")
    fallback = router.fall_back(decision, ["small"], _situation(), failure)
    assert fallback is not None
    assert fallback.model == "large"
    assert router.fall_back(fallback, ["small", "large"], _situation(), failure) is None
