"""``laya-desktop route``: one prompt, and a file of prompts with what they should become."""

import json
from pathlib import Path

import pytest

from laya_desktop.cli import main
from laya_desktop.cli_route import _Row, summarise
from laya_desktop.core.types import Decision

CONFIG = """\
models:
  - {name: small, path: /none/small.gguf}
  - {name: coder, path: /none/coder.gguf}
router: {rules: [{name: code, when: {task: code}, use: coder}]}
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG)
    return str(file)


def batch(folder: Path, *rows: dict[str, object]) -> str:
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(file)


def decided(task: str, model: str = "m", elapsed_us: float = 10.0) -> Decision:
    return Decision(model=model, rule="", reason="", task=task, candidates=(), elapsed_us=elapsed_us)


def test_one_prompt(config, capsys):
    assert main(["route", "hello", "--config", config]) == 0
    out = capsys.readouterr().out
    assert out.startswith("small: ")
    assert "task chat" in out
    assert "\n  coder: " in out


def test_one_prompt_as_json(config, capsys, own_home):
    assert main(["--config", config, "route", "帮我重构这个模块", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert set(made) >= {"model", "rule", "reason", "task", "candidates", "elapsed_us"}
    assert made["task"] == "code"
    assert [candidate["model"] for candidate in made["candidates"]] == ["small", "coder"]
    assert not own_home.exists()  # nothing is written


def test_a_batch(config, tmp_path, capsys):
    file = batch(
        tmp_path,
        {"text": "hello", "expect_task": "chat", "expect_model": "small", "id": "a", "lang": "en"},
        {"text": "def f(x): return x", "expect_task": "chat"},
        {"text": "你好\u2028", "expect_task": None},
    )
    assert main(["route", "--batch", file, "--json", "--config", config]) == 0
    *rows, last = [json.loads(line) for line in capsys.readouterr().out.split("\n") if line]
    assert [row["task"] for row in rows] == ["chat", "code", "chat"]
    assert all(row["model"] and row["elapsed_us"] > 0 for row in rows)
    assert (rows[0]["id"], rows[0]["expect_model"]) == ("a", "small")
    summary = last["summary"]
    assert (summary["rows"], summary["expected"], summary["accuracy"]) == (3, 2, 0.5)
    assert summary["confusion"] == {"chat": {"chat": 1, "code": 1}}
    assert summary["models"]["accuracy"] == 1.0


def test_a_batch_for_people(config, tmp_path, capsys):
    file = batch(tmp_path, {"text": "hello", "expect_task": "chat"})
    assert main(["route", "--batch", file, "--config", config]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.split() == ["chat", "small", "'hello'"]
    assert "accuracy: 1.0" in rest


def test_the_figures():
    rows = [_Row("", expect_task=task) for task in ["chat", "chat", "chat", "code", "code"]]
    made = [decided(task) for task in ["chat", "chat", "code", "code", "reasoning"]]
    summary = summarise(rows, made)
    assert summary["accuracy"] == 0.6
    assert summary["f1"] == {"chat": 0.8, "code": 0.5, "reasoning": 0.0}
    assert summary["macro_f1"] == round(1.3 / 3, 4)
    assert summary["confusion"] == {"chat": {"chat": 2, "code": 1}, "code": {"code": 1, "reasoning": 1}}


def test_the_times():
    times = [float(number) for number in range(200)]
    summary = summarise([_Row("") for _ in times], [decided("chat", elapsed_us=time) for time in times])
    assert summary == {"rows": 200, "mean_us": 99.5, "p99_us": 198.0}
    assert summarise([], []) == {"rows": 0}


@pytest.mark.parametrize("arguments", [[], ["hello", "--batch", "x"]])
def test_a_wrong_call(config, capsys, arguments):
    assert main(["route", "--config", config, *arguments]) == 2
    assert "either a prompt or --batch" in capsys.readouterr().err


def test_failures_are_one_sentence(config, tmp_path, capsys):
    rows = batch(tmp_path, {"text": "a"}, {"text": 5})
    empty = tmp_path / "empty.yaml"
    empty.write_text("models: []\n")
    broken = tmp_path / "broken.yaml"
    broken.write_text("models: 5\n")
    for arguments, words in [
        (["--batch", rows, "--config", config], "rows.jsonl, line 2: "),
        (["--batch", str(tmp_path / "none"), "--config", config], "No such file"),
        (["a", "--config", str(tmp_path / "none.yaml")], "none.yaml does not exist."),
        (["a", "--config", str(empty)], "No model is registered."),
        (["a", "--config", str(broken)], "models"),
    ]:
        assert main(["route", *arguments]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert words in err
        assert len(err.splitlines()) == 1
