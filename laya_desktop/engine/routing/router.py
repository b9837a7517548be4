"""Decides which model answers. A pure function of the request, the config and the models' states."""

import time
from collections.abc import Sequence

from laya_desktop.config.schema import ModelEntry, RouterConfig, Rule, Strategy
from laya_desktop.core.errors import ErrorCode, ErrorInfo, LayaError
from laya_desktop.core.events import ModelStatus
from laya_desktop.core.types import AUTO_MODEL, Candidate, ChatRequest, Decision, ModelState
from laya_desktop.engine.names import ModelNames
from laya_desktop.engine.routing.conditions import holds
from laya_desktop.engine.routing.features import Features, extract

_NO_SIZE = 1 << 62


class Router:
    """Made anew for every config. Owned by the engine thread; takes no locks and does no I/O."""

    def __init__(self, config: RouterConfig, entries: Sequence[ModelEntry]) -> None:
        self._config = config
        self._entries = {entry.name: entry for entry in entries}
        self._names = ModelNames(entries)
        # Rules and fallbacks may use aliases; the models of a decision go by their registered names.
        self._fallbacks = self._registered(config.fallback_models)
        self._rules = [(rule, self._targets(rule)) for rule in config.rules if rule.enabled]

    def decide(self, request: ChatRequest, models: Sequence[ModelStatus], now: float) -> Decision:
        """Choose a model. `now` is wall-clock seconds, as in `ModelStatus.retry_at`.

        Raises LayaError(MODEL_NOT_FOUND) for an unknown name or when no model is registered.
        """
        started = time.perf_counter()
        features = extract(request)
        candidates: tuple[Candidate, ...] = ()
        if request.model != AUTO_MODEL:
            model = self._names.resolve(request.model)
            rule, reason = "named", "The request names this model."
        else:
            candidates = tuple(self._candidate(model, now) for model in models)
            model, rule, reason = self._choose(features, models, candidates)
        return Decision(
            model=model,
            rule=rule,
            reason=reason,
            task=features.task,
            candidates=candidates,
            elapsed_us=(time.perf_counter() - started) * 1e6,
        )

    def fall_back(
        self,
        failed: Decision,
        tried: Sequence[str],
        models: Sequence[ModelStatus],
        error: ErrorInfo,
        now: float,
    ) -> Decision | None:
        """The next model of `router.fallback_models` that was not tried, or None."""
        usable = {model.name for model in models if not self._candidate(model, now).excluded}
        for name in self._fallbacks:
            if name in usable and name not in tried:
                return Decision(
                    model=name,
                    rule="fallback",
                    reason=f"{failed.model} failed: {error.message}",
                    task=failed.task,
                    candidates=failed.candidates,
                    elapsed_us=failed.elapsed_us,
                )
        return None

    def _candidate(self, model: ModelStatus, now: float) -> Candidate:
        """A model with the reason why it cannot be chosen, if there is one. One that failed may be tried
        again when its time has come; one whose file is unusable may not."""
        excluded = ""
        if model.error is not None and (
            model.state is not ModelState.FAILED or (model.retry_at is not None and now < model.retry_at)
        ):
            excluded = model.error.message
        elif model.info is not None and not model.info.has_chat_template and not self._has_template(model):
            excluded = "It has no chat template."
        return Candidate(model=model.name, excluded=excluded)

    def _choose(
        self, features: Features, models: Sequence[ModelStatus], candidates: Sequence[Candidate]
    ) -> tuple[str, str, str]:
        """Model, rule and reason of an automatic choice."""
        if not models:
            raise LayaError(
                ErrorCode.MODEL_NOT_FOUND,
                "No model is registered.",
                hint="Add one under 'models:' in config.yaml.",
                param="model",
            )
        usable = [
            model for model, candidate in zip(models, candidates, strict=True) if not candidate.excluded
        ]
        # With nothing usable the first model is named, so that its own error is what people read.
        usable = usable or list(models[:1])
        for rule, targets in self._rules:
            if holds(rule.when, features):
                allowed = [model for model in usable if model.name in targets]
                if allowed:
                    strategy = rule.use.strategy or self._config.strategy
                    chosen = self._pick(allowed, strategy, features)
                    return chosen.name, rule.name, f"Rule '{rule.name}' matches."
        chosen = self._pick(usable, self._config.strategy, features)
        reason = _REASONS[features.task] if features.task != "chat" or features.light else _UNSURE
        return chosen.name, f"task:{features.task}", reason

    def _targets(self, rule: Rule) -> frozenset[str]:
        """Registered names of the models that a rule sends to."""
        if rule.use.tag is not None:
            return frozenset(e.name for e in self._entries.values() if rule.use.tag in e.tags)
        return frozenset(self._registered(rule.use.models))

    def _registered(self, names: Sequence[str]) -> list[str]:
        return [found for name in names if (found := self._names.get(name)) is not None]

    def _pick(self, models: Sequence[ModelStatus], strategy: Strategy, features: Features) -> ModelStatus:
        """By priority alone, or the smallest model that the task allows: light prompts go to the smallest,
        code to the smallest code model if there is one, everything else to the largest, which is the safe
        choice where the task is not sure."""
        if strategy is Strategy.PRIORITY:
            return min(models, key=self._priority)
        if features.light:
            return min(models, key=lambda model: (_size(model, _NO_SIZE), self._priority(model)))
        coders = [model for model in models if features.task == "code" and self._writes_code(model)]
        if coders:
            return min(coders, key=lambda model: (_size(model, _NO_SIZE), self._priority(model)))
        return max(models, key=lambda model: (_size(model, 0), -self._priority(model)))

    def _has_template(self, model: ModelStatus) -> bool:
        entry = self._entries.get(model.name)
        return entry is not None and entry.chat_template is not None

    def _priority(self, model: ModelStatus) -> int:
        entry = self._entries.get(model.name)
        return entry.priority if entry else 0

    def _writes_code(self, model: ModelStatus) -> bool:
        entry = self._entries.get(model.name)
        title = model.info.title if model.info and model.info.title else ""
        words = f"{model.name} {title} {' '.join(entry.tags) if entry else ''}".casefold()
        return "code" in words


_REASONS = {
    "chat": "A light prompt goes to the smallest model.",
    "code": "Code goes to the smallest code model, or to the largest model.",
    "reasoning": "A demanding prompt goes to the largest model.",
    "writing": "Writing goes to the largest model.",
    "translation": "Translation goes to the largest model.",
}
_UNSURE = "It looks like chat, but that is not sure or the prompt is long, so the largest model answers."


def _size(model: ModelStatus, unknown: int) -> int:
    """Bytes of the model's files, or `unknown`."""
    return model.info.size_bytes if model.info else unknown
