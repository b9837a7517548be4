"""The commands of train_intent.py."""

import argparse
import json
from pathlib import Path

from intent import learn, report
from intent.sentences import Sample, sentences
from laya_desktop.engine.routing import intent
from laya_desktop.engine.routing.scan import scan

ROOT = Path(__file__).resolve().parents[2]
WEIGHTS = ROOT / "laya_desktop" / "engine" / "routing" / "intent.npz"
_SURELY_NOT_CHAT = 0.1


def main(arguments: list[str] | None = None) -> None:
    options = _parse(arguments)
    if options.command == "report":
        found = report.measure(intent.model(), _read(options.data))
        print(json.dumps(found, ensure_ascii=False, indent=1) if options.json else report.as_text(found))
        return
    labelled = [sample for path in options.train for sample in _read(path)]
    unlabelled = [sample for path in options.chat for sample in _read(path, "chat")]
    samples = [*sentences(), *labelled, *_likely_chat(labelled, unlabelled)]
    if options.command == "holdout":
        _hold_out(samples, sorted({sample.source for sample in labelled}))
        return
    packed = intent.pack(*learn.fit(samples))
    WEIGHTS.write_bytes(packed)
    print(f"{WEIGHTS.relative_to(ROOT)}: {len(packed):,} bytes from {len(samples):,} samples")
    if options.dev:
        print(report.as_text(report.measure(intent.unpack(packed), _read(options.dev))))


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train and measure the intent model.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("train", "holdout"):
        command = commands.add_parser(name)
        command.add_argument("--train", type=Path, nargs="+", default=[], metavar="FILE")
        command.add_argument("--chat", type=Path, nargs="+", default=[], metavar="FILE")
    commands.choices["train"].add_argument("--dev", type=Path, metavar="FILE")
    command = commands.add_parser("report")
    command.add_argument("--data", type=Path, required=True, metavar="FILE")
    command.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


def _read(path: Path, task: str | None = None) -> list[Sample]:
    rows = (json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip())
    return [
        Sample(row["text"], task or row["label"], row.get("lang", ""), row.get("source", path.stem))
        for row in rows
        if task is None or row.get("lang") in ("en", "zh")
    ]


def _likely_chat(labelled: list[Sample], unlabelled: list[Sample]) -> list[Sample]:
    """Unlabelled rows without those that a model made without them takes for something else."""
    if not unlabelled:
        return []
    model = intent.Model(*learn.fit([*sentences(), *labelled]))
    chat = intent.TASKS.index("chat")
    return [
        sample
        for sample in unlabelled
        if model.classify(scan(sample.text)).probabilities[chat] >= _SURELY_NOT_CHAT
    ]


def _hold_out(samples: list[Sample], sources: list[str]) -> None:
    for source in sources:
        model = intent.Model(*learn.fit([sample for sample in samples if sample.source != source]))
        kept_back = [sample for sample in samples if sample.source == source]
        print(report.one_line(source, report.measure(model, kept_back)), flush=True)
