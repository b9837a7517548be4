"""``laya-desktop route``: which model would answer, for one prompt or a file of them. Nothing is loaded."""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from laya_desktop.config.store import ConfigStore
from laya_desktop.core.errors import LayaError
from laya_desktop.core.paths import Paths
from laya_desktop.core.types import Caller, ChatRequest, Decision, Message, Role
from laya_desktop.engine.offline import OfflineEngine


class _Row(msgspec.Struct):
    """A line of a batch. `id` comes back with its decision; other fields are ignored."""

    text: str
    id: str | int | None = None
    expect_task: str | None = None
    expect_model: str | None = None


def run(options: argparse.Namespace) -> int:
    """`options` has text, batch, json and config. Returns the exit code: 1 if there is no decision, 2 for a
    wrong call."""
    if (options.text is None) == (options.batch is None):
        print("Give either a prompt or --batch FILE.", file=sys.stderr)
        return 2
    if options.config is not None and not options.config.exists():
        print(f"{options.config} does not exist.", file=sys.stderr)
        return 1
    paths = Paths.default()
    store = ConfigStore(options.config or paths.config_file)
    if not store.load():
        for problem in store.problems:
            print(problem, file=sys.stderr)
        return 1
    try:
        rows = _read(options.batch) if options.batch else []
        with OfflineEngine(store, paths) as engine:
            if options.batch is None:
                _print_one(_decide(engine, options.text), as_json=options.json)
            else:
                _print_batch(engine, rows, as_json=options.json)
    except (LayaError, OSError, ValueError) as error:
        print(error.info.sentence() if isinstance(error, LayaError) else error, file=sys.stderr)
        return 1
    return 0


def _decide(engine: OfflineEngine, text: str) -> Decision:
    return engine.route(ChatRequest(id="", messages=(Message(Role.USER, text),), caller=Caller.API))


def _print_one(decision: Decision, *, as_json: bool) -> None:
    if as_json:
        print(_line(msgspec.to_builtins(decision)))
        return
    print(f"{decision.model}: {decision.reason}")
    print(f"  task {decision.task}, rule {decision.rule}, decided in {decision.elapsed_us:.0f} µs")
    for candidate in decision.candidates:
        print(f"  {candidate.model}: {candidate.excluded or 'could answer'}")


def _read(file: Path) -> list[_Row]:
    """Raises ValueError with the number of the line at fault, OSError."""
    rows = []
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        if line.strip():
            try:
                rows.append(msgspec.json.decode(line, type=_Row))
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise ValueError(f"{file}, line {number}: {error}.") from None
    return rows


def _print_batch(engine: OfflineEngine, rows: list[_Row], *, as_json: bool) -> None:
    decisions = []
    for row in rows:
        decision = _decide(engine, row.text)
        decisions.append(decision)
        given = {name: value for name, value in msgspec.to_builtins(row).items() if value is not None}
        given.pop("text")
        made = msgspec.to_builtins(decision)
        made.pop("candidates")
        words = f"{decision.task:<12} {decision.model:<24} {row.text[:60]!r}"
        print(_line(given | made) if as_json else words)
    summary = summarise(rows, decisions)
    print(_line({"summary": summary}) if as_json else _sentences(summary))


def summarise(rows: list[_Row], decisions: list[Decision]) -> dict[str, Any]:
    """How well the decisions meet what the rows expect: of tasks, and under ``models`` of models."""
    times = sorted(decision.elapsed_us for decision in decisions)
    pairs = list(zip(rows, decisions, strict=True))
    summary: dict[str, Any] = {"rows": len(rows)}
    if times:
        summary["mean_us"] = round(sum(times) / len(times), 1)
        summary["p99_us"] = round(times[len(times) * 99 // 100], 1)
    summary |= _compare([(row.expect_task, made.task) for row, made in pairs if row.expect_task is not None])
    models = _compare([(row.expect_model, made.model) for row, made in pairs if row.expect_model is not None])
    return summary | ({"models": models} if models else {})


def _compare(pairs: list[tuple[str | None, str]]) -> dict[str, Any]:
    """Accuracy, F1 averaged over all labels that occur, and how often each expected label became which."""
    if not pairs:
        return {}
    confusion: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for expected, made in pairs:
        confusion[str(expected)][made] += 1
    labels = sorted({str(label) for pair in pairs for label in pair})
    scores = [_f1(label, pairs) for label in labels]
    return {
        "expected": len(pairs),
        "accuracy": round(sum(expected == made for expected, made in pairs) / len(pairs), 4),
        "macro_f1": round(sum(scores) / len(scores), 4),
        "f1": dict(zip(labels, (round(score, 4) for score in scores), strict=True)),
        "confusion": {
            label: dict(sorted(confusion[label].items())) for label in labels if label in confusion
        },
    }


def _f1(label: str, pairs: list[tuple[str | None, str]]) -> float:
    hits = sum(expected == made == label for expected, made in pairs)
    named = sum((expected == label) + (made == label) for expected, made in pairs)
    return 2 * hits / named


def _sentences(summary: dict[str, Any]) -> str:
    return "\n".join(_describe(summary, ""))


def _describe(part: dict[str, Any], indent: str) -> Iterator[str]:
    for name, value in part.items():
        if isinstance(value, dict):
            yield f"{indent}{name}:"
            yield from _describe(value, indent + "  ")
        else:
            yield f"{indent}{name}: {value}"


def _line(payload: object) -> str:
    return json.dumps(payload, ensure_ascii=False)
