"""Figures on how well the intent model does on labelled prompts."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from intent.sentences import Sample
from laya_desktop.engine.routing import intent
from laya_desktop.engine.routing.scan import scan

_HARD = ("code", "reasoning")
_BANDS = 10

Outcome = tuple[str, intent.Intent]


def measure(model: intent.Model, samples: Sequence[Sample]) -> dict[str, Any]:
    """Figures for all samples, and by source and language."""
    outcomes = [(sample.task, model.classify(scan(sample.text))) for sample in samples]
    parts: dict[str, dict[str, list[Outcome]]] = {
        "sources": defaultdict(list),
        "languages": defaultdict(list),
    }
    for sample, outcome in zip(samples, outcomes, strict=True):
        parts["sources"][sample.source].append(outcome)
        parts["languages"][sample.lang or "?"].append(outcome)
    found: dict[str, Any] = {"all": _figures(outcomes)}
    for name, groups in parts.items():
        found[name] = {key: _figures(groups[key]) for key in sorted(groups)}
    return found


def _figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    confusion = {task: dict.fromkeys(intent.TASKS, 0) for task in intent.TASKS}
    for task, guess in outcomes:
        confusion[task][guess.task] += 1
    labels = {task: _label(confusion, task) for task in intent.TASKS if any(confusion[task].values())}
    hard = [guess for task, guess in outcomes if task in _HARD]
    chat = [guess for task, guess in outcomes if task == "chat"]
    curve = _curve(outcomes)
    return {
        "n": len(outcomes),
        "accuracy": sum(task == guess.task for task, guess in outcomes) / len(outcomes),
        "macro_f1": sum(label["f1"] for label in labels.values()) / len(labels),
        "hard_to_smallest": _share(hard),
        "chat_to_smallest": _share(chat),
        "calibration_error": sum(abs(band["confidence"] - band["accuracy"]) * band["n"] for band in curve)
        / len(outcomes),
        "labels": labels,
        "confusion": confusion,
        "calibration": curve,
    }


def _label(confusion: dict[str, dict[str, int]], task: str) -> dict[str, float]:
    hits = confusion[task][task]
    wanted = sum(confusion[task].values())
    guessed = sum(row[task] for row in confusion.values())
    return {
        "precision": hits / guessed if guessed else 0.0,
        "recall": hits / wanted,
        "f1": 2 * hits / (wanted + guessed),
    }


def _share(guesses: Sequence[intent.Intent]) -> float | None:
    """The share that would be sent to the smallest model; None of nothing."""
    if not guesses:
        return None
    return sum(guess.task == "chat" and guess.confidence >= intent.CONFIDENT for guess in guesses) / len(
        guesses
    )


def _curve(outcomes: Sequence[Outcome]) -> list[dict[str, float]]:
    """Mean confidence and accuracy in bands of confidence that are not empty."""
    bands: dict[int, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        bands[min(_BANDS - 1, int(outcome[1].confidence * _BANDS))].append(outcome)
    return [
        {
            "from": band / _BANDS,
            "n": len(bands[band]),
            "confidence": sum(guess.confidence for _, guess in bands[band]) / len(bands[band]),
            "accuracy": sum(task == guess.task for task, guess in bands[band]) / len(bands[band]),
        }
        for band in sorted(bands)
    ]


def one_line(name: str, found: dict[str, Any]) -> str:
    """The figures of all samples in a line."""
    return _summary(name, found["all"])


def _summary(name: str, figures: dict[str, Any]) -> str:
    shares = "  ".join(
        f"{title} {share:.3f}"
        for title, share in (
            ("hard→smallest", figures["hard_to_smallest"]),
            ("chat→smallest", figures["chat_to_smallest"]),
        )
        if share is not None
    )
    labels = "  ".join(f"{task} {label['f1']:.2f}" for task, label in figures["labels"].items())
    return (
        f"{name:36} n {figures['n']:5}  accuracy {figures['accuracy']:.3f}  "
        f"macro-F1 {figures['macro_f1']:.3f}  ECE {figures['calibration_error']:.3f}  {shares}  | F1 {labels}"
    )


def as_text(found: dict[str, Any]) -> str:
    """The whole report, for reading."""
    lines = [_summary("all", found["all"])]
    for part in ("sources", "languages"):
        for name, figures in found[part].items():
            lines += [_summary(f"  {name}", figures), *_table(figures["confusion"])]
    lines += ["confusion (rows: label, columns: guess)", *_table(found["all"]["confusion"]), "calibration"]
    lines += [
        f"  {band['from']:.1f}–{band['from'] + 1 / _BANDS:.1f}  n {band['n']:5}  "
        f"confidence {band['confidence']:.3f}  accuracy {band['accuracy']:.3f}"
        for band in found["all"]["calibration"]
    ]
    return "\n".join(lines)


def _table(confusion: dict[str, dict[str, int]]) -> list[str]:
    rows = [(task, row) for task, row in confusion.items() if any(row.values())]
    head = "".join(f"{task[:6]:>8}" for task in intent.TASKS)
    return [
        f"      {'':12}{head}",
        *(f"      {task:12}" + "".join(f"{row[g]:8}" for g in row) for task, row in rows),
    ]
