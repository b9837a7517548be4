"""From text to a `Config`, and the sentences for what is wrong."""

import os
import sys
from pathlib import Path

import pytest

from laya_desktop.config.checks import Checked, check
from laya_desktop.config.reader import read
from laya_desktop.config.schema import Backend, Config, ModelEntry, Strategy
from laya_desktop.core.errors import ErrorCode, LayaError

DATA = Path(__file__).parents[2] / "data"
ROOT = Path(__file__).parents[3]


def checked(text: str, folder: Path | None = None) -> Checked:
    return check(read(text.encode(), "config.yaml"), folder)


def good(text: str, folder: Path | None = None) -> Config:
    result = checked(text, folder)
    assert not result.problems
    assert result.config is not None
    return result.config


def problems(text: str) -> list[str]:
    result = checked(text)
    assert result.config is None
    return [str(problem) for problem in result.problems]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        "server:\nmodels:\nrouter: {}\n",
        "router: {rules: , fallback_models: null}\nserver: {api_keys: ~}\n",
        "executor: {threads: null, kv_cache_limit_gb: ~}\nhub: {proxy: null}\nmemory: {reserved_system_gb: }",
    ],
)
def test_empty_means_defaults(text: str) -> None:
    assert good(text) == Config()


def test_optional_settings_of_a_model_may_be_null() -> None:
    optional = ["gpu_memory_limit_gb", "context_tokens", "chat_template", "aliases", "tags"]
    text = "models: [{name: a, path: x.gguf, " + ", ".join(f"{key}: null" for key in optional) + "}]"
    assert good(text) == good("models: [{name: a, path: x.gguf}]")


# Names stay what was typed


@pytest.mark.parametrize(
    "name",
    [
        "no",
        "on",
        "null",
        "yes",
        "~",
        "true",
        "3.1",
        "2024-12-01",
        "0123",
        "12:30",
        "1_000",
        "0x1F",
        "1e3",
        ".5",
        "+1",
        "=",
        "名前",
    ],
)
def test_unquoted_names_are_text(name: str) -> None:
    text = f"models:\n  - name: {name}\n    path: 0123\n    aliases: [x{name}, 0.10]\n    tags: [{name}]\n"
    model = good(text).models[0]
    assert (model.name, model.path, model.aliases, model.tags) == (
        name,
        "0123",
        (f"x{name}", "0.10"),
        (name,),
    )


def test_two_models_of_one_name() -> None:
    text = "models:\n  - {name: smol, path: a}\n  - {name: smol, path: b}\n"
    found = "models[1].name: the name 'smol' is already taken by models[0].name in line 2."
    assert problems(text) == [f"config.yaml:3: {found} Choose another."]


def test_names_that_differ_in_case_only() -> None:
    assert (
        "'SMOL' is already taken by models[0].name in line 1"
        in problems("models: [{name: smol, path: a}, {name: SMOL, path: b}]")[0]
    )


def test_an_alias_that_is_another_models_name() -> None:
    text = "models:\n  - {name: a, path: a, aliases: [b]}\n  - {name: b, path: b}\n"
    assert problems(text)[0].startswith(
        "config.yaml:2: models[0].aliases[0]: the name 'b' is already taken by"
    )
    assert "models[1].name in line 3" in problems(text)[0]


def test_a_key_twice() -> None:
    assert problems("server:\n  port: 1\n  port: 2\n") == [
        "config.yaml:3: server.port: this key is already set in line 2. Keep one of the two."
    ]


@pytest.mark.parametrize("name", ["auto", "AUTO", "''", "' x'", '"a\\tb"'])
def test_names_that_are_refused(name: str) -> None:
    assert "models[0].name: " in problems(f"models: [{{name: {name}, path: x}}]")[0]


# Sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- a\n", "config.yaml:1: the file must consist of sections"),
        ("just text\n", "config.yaml:1: the file must consist of sections"),
        (
            "models: [{name: a, path: b, n_ctxx: 512}]",
            "models[0].n_ctxx: unknown key. Did you mean 'context_tokens'?",
        ),
        (
            "models: [{name: a, path: b, n_ctx: -1}]",
            "models[0].n_ctx: unknown key. Did you mean 'context_tokens'?",
        ),
        (
            "models: [{name: a, path: b, context_tokens: -1}]",
            "models[0].context_tokens: -1 is out of bounds: it must",
        ),
        ("servr: {}\n", "servr: unknown key. Did you mean 'server'?"),
        ("port: 80\n", "port: unknown key. It belongs in the section 'server'."),
        ("ui: {thme: dark}", "ui.thme: unknown key. Did you mean 'theme'?"),
        ("ui: {zzz: dark}", "ui.zzz: unknown key. The nearest known key is"),
        (
            "server: {port: '8080'}",
            "server.port: expected a whole number, found the text '8080'. Write 8080 without",
        ),
        ("server: {port: 8080.0}", "server.port: expected a whole number, found 8080.0. Write 8080."),
        ("server: {port: 99999}", "server.port: 99999 is out of bounds: it must be at most 65535."),
        ("server: {port: -1}", "server.port: -1 is out of bounds: it must be at least 0."),
        ("server: {port: 0x1F}", "server.port: 0x1F is not a plain decimal number."),
        ("server: {port: 0123}", "server.port: 0123 is not a plain decimal number."),
        ("server: {port: 1_000}", "server.port: 1_000 is not a plain decimal number."),
        ("server: {port: yes}", "server.port: expected a whole number, found yes."),
        ("server: {port: [1]}", "server.port: expected a whole number, found a list."),
        (
            "server:\n  port:\n",
            "config.yaml:2: server.port: has no value. Remove the line to use the default.",
        ),
        ("server: 3", "server: expected a section with keys, found 3."),
        (
            "server: {enabled: 'true'}",
            "server.enabled: expected true or false, found the text 'true'. Write it without",
        ),
        ("server: {enabled: 1}", "server.enabled: expected true or false, found 1."),
        ("server: {host: [a]}", "server.host: expected text, found a list."),
        (
            "memory: {reserved_system_gb: 4GB | 80%}",
            "found the text '4GB | 80%'. Write only the number, without a unit.",
        ),
        ("memory: {reserved_system_gb: .nan}", "memory.reserved_system_gb: "),
        ("memory: {reserved_system_gb: '4'}", "Write 4 without quotes."),
        (
            "ui: {theme: drak}",
            "the text 'drak' is not one of 'system', 'light' or 'dark'. Did you mean 'dark'?",
        ),
        ("models: {}\n", "models: expected a list, found a section."),
        ("models: [{path: b}]", "models[0].name: is missing."),
        ("models: [{name: a}]", "models[0].path: is missing."),
        (
            "models: [{name: a, path: b, device: gpu}]",
            "models[0].device: the text 'gpu' is not one of auto, cpu",
        ),
        (
            "models: [{name: a, path: b, gpu_layers: all}]",
            "models[0].gpu_layers: expected a number of layers",
        ),
        ("models: [{name: a, path: b, backend: ggufs}]", "Did you mean 'gguf'?"),
        ("router: {fallback_models: [x]}", "router.fallback_models[0]: there is no model 'x'."),
        ("router: {rules: [{name: a, use: x}]}", "router.rules[0].use: there is no model 'x'."),
        ("router: {rules: [{name: a, use: [x]}]}", "router.rules[0].use[0]: there is no model 'x'."),
        ("router: {rules: [{name: a, use: {tag: x}}]}", "router.rules[0].use.tag: no model has the tag 'x'."),
        ("router: {rules: [{name: a, use: {}}]}", "router.rules[0].use: name either models or a tag."),
        (
            "router: {rules: [{name: a, use: {tag: t}, when: {}}]}",
            "router.rules[0].when: this condition is empty",
        ),
        (
            "router: {rules: [{name: a, use: {tag: t}, when: {regex: '('}}]}",
            "when.regex: not a regular expression",
        ),
        (
            "router: {rules: [{name: a, use: {tag: t}, when: {any: [{has_code: 1}]}}]}",
            "any[0].has_code: expected true",
        ),
        ("router: {rules: [{name: a, use: {tag: t}, when: {any: []}}]}", "when.any: "),
        (
            "router: {rules: [{name: a, use: {tag: t}, when: {min_chars: 9, max_chars: 1}}]}",
            "so this never holds",
        ),
    ],
)
def test_sentences(text: str, expected: str) -> None:
    found = problems(text)
    assert any(expected in problem for problem in found), found
    assert all(problem.startswith("config.yaml:") for problem in found)


def test_all_problems_together_in_the_order_of_lines() -> None:
    text = "server:\n  port: 'x'\n  port: 2\nui:\n  theme: drak\nexecutor: {threads: 0}\nfoo: !x 1\n"
    assert [problem.line for problem in checked(text).problems] == [2, 3, 5, 6, 7, 7]


def test_a_failing_item_does_not_also_make_its_list_too_short() -> None:
    text = "models: [{name: m, path: x}]\nrouter: {rules: [{name: a, use: m, when: {any: [{has_code: 1}]}}]}"
    assert len(problems(text)) == 1


# Meaning


def test_rules() -> None:
    text = """
models: [{name: m, path: x.gguf, aliases: [a]}, {name: n, path: y.gguf, tags: [code]}]
router:
  rules:
    - name: short
      use: m
    - name: list
      enabled: off
      when: {task: code, keywords_any: [Def, no], not: {caller: api}}
      use: [a, n]
    - name: full
      when: {any: [{min_chars: 10}, {all: [{has_code: true}, {regex: "^x"}]}]}
      use: {models: [m, n], strategy: priority}
    - {name: tag, use: {tag: code}}
"""
    short, listed, full, tag = good(text).router.rules
    assert short.use.models == ("m",)
    assert short.when is None
    assert listed.enabled is False
    assert listed.use.models == ("a", "n")
    assert listed.when is not None
    assert listed.when.keywords_any == ("Def", "no")
    assert listed.when.not_ is not None
    assert listed.when.not_[0].caller == "api"
    assert full.use.strategy is Strategy.PRIORITY
    assert full.when is not None
    assert full.when.any is not None
    assert full.when.any[1].all is not None
    assert tag.use.tag == "code"


@pytest.mark.parametrize(
    ("path", "backend"),
    [
        ("/m/x.gguf", "gguf"),
        ("X.GGUF", "gguf"),
        ("/m/Qwen3-8B-4bit-mlx", "mlx"),
        ("mlx-community/Qwen3-8B", "mlx"),
        ("https://example.org/v1", "openai"),
        ("Qwen/Qwen2.5-0.5B", "hf"),
    ],
)
def test_backend_is_guessed(path: str, backend: str) -> None:
    assert good(f"models: [{{name: a, path: {path}}}]").models[0].backend == backend


@pytest.mark.parametrize("name", ["pytorch", "transformers", "hf"])
def test_backend_aliases(name: str) -> None:
    assert good(f"models: [{{name: a, path: x, backend: {name}}}]").models[0].backend is Backend.HF


def test_paths_start_at_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    (tmp_path / "own" / "model").mkdir(parents=True)
    typed = [
        "sub/x.gguf",
        "~/y.gguf",
        "owner/name",
        "own/model",
        "http://h/v1",
        str(tmp_path / "z.gguf"),
        "C:\\m.gguf",
    ]
    text = "models:\n" + "".join(f"- {{name: m{i}, path: '{path}'}}\n" for i, path in enumerate(typed))
    assert [model.path for model in good(text, tmp_path).models] == [
        str(tmp_path / "sub" / "x.gguf"),
        str(tmp_path / "home" / "y.gguf"),
        "owner/name",
        str(tmp_path / "own" / "model"),
        "http://h/v1",
        str(tmp_path / "z.gguf"),
        "C:\\m.gguf",
    ]


def test_chat_template_source(tmp_path: Path) -> None:
    (tmp_path / "t.jinja").write_text("{{ messages }}", encoding="utf-8")
    text = (
        "models: [{name: a, path: x, chat_template: t.jinja}, {name: b, path: x, chat_template: '{{ x }}'},"
    )
    text += "{name: c, path: x, chat_template: gone.jinja}, {name: d, path: x, chat_template: ~}]"
    named, given, gone, without = good(text, tmp_path).models
    assert named.template_source() == "{{ messages }}"
    assert given.template_source() == "{{ x }}"
    assert without.template_source() is None
    with pytest.raises(LayaError, match=r"gone\.jinja") as caught:
        gone.template_source()
    assert caught.value.info.code is ErrorCode.CHAT_TEMPLATE_ERROR


def one_template(folder: Path) -> ModelEntry:
    return good("models: [{name: a, path: x, chat_template: t.jinja}]", folder).models[0]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "large", "bytes"])
def test_a_chat_template_must_be_a_small_text_file(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "t.jinja"
    match kind:
        case "pipe":
            os.mkfifo(file)
        case "device":
            file.symlink_to("/dev/zero")
        case "folder":
            file.mkdir()
        case "large":
            file.write_bytes(b"x" * 1_000_001)
        case "bytes":
            file.write_bytes(b"\xff")
    reasons = {"large": "larger than 1,000,000 bytes", "bytes": "0xff"}
    with pytest.raises(LayaError, match=reasons.get(kind, "it is not a file")) as caught:
        one_template(tmp_path).template_source()
    assert caught.value.info.code is ErrorCode.CHAT_TEMPLATE_ERROR
    assert "model a" in caught.value.info.message


def test_a_chat_template_may_be_as_large_as_allowed(tmp_path: Path) -> None:
    (tmp_path / "t.jinja").write_bytes(b"x" * 1_000_000)
    assert len(one_template(tmp_path).template_source() or "") == 1_000_000


def test_find_model() -> None:
    config = good("models: [{name: a, path: x, aliases: [b]}]")
    assert config.find_model("a") is config.find_model("b") is config.models[0]
    assert config.find_model("c") is None


def test_keys_are_not_shown() -> None:
    assert "secret" not in repr(good("server: {api_keys: [secret]}"))


# Files that ship


@pytest.mark.parametrize("number", [1, 2])
def test_seed_configs_are_accepted(number: int) -> None:
    config = good((DATA / f"seed-config-{number}.yaml").read_text(encoding="utf-8"))
    assert config.router.strategy is Strategy.MIN_LATENCY
    assert config.router.fallback_models == ("qwen-0.5b",)
    assert config.models[0].name == "qwen-0.5b"
    assert config.models[1].backend is Backend.MLX
    assert config.memory.offload_threshold_gb == 12


def test_the_tuned_seed_config() -> None:
    config = good((DATA / "seed-config-2.yaml").read_text(encoding="utf-8"))
    qwen, mlx, deepseek = config.models
    assert (qwen.keep_in_memory, mlx.gpu_memory_limit_gb, deepseek.gpu_layers) == (True, 6, 20)
    assert [model.priority for model in config.models] == [1, 3, 2]
    assert (config.executor.max_batch_size, config.executor.stream_buffer) == (4, 8192)
    assert (config.scheduler.max_concurrent_requests, config.scheduler.queue_timeout_ms) == (4, 3000)
    assert config.memory.reserved_system_gb == 4


def test_the_example_has_every_default_and_no_notes() -> None:
    result = check(read((ROOT / "config.yaml").read_bytes(), "config.yaml"), ROOT)
    assert (result.config, result.problems, result.notes) == (Config(), (), ())


def test_settings_without_effect_are_noted() -> None:
    text = "models: [{name: a, path: x, backend: hf, device: cuda}]\n"
    text += "executor: {kv_cache_mode: elastic, kv_overflow: error}\n"
    text += "memory: {enable_offload: false}\nhub: {proxy: null}\n"
    assert checked(text).notes == (
        "models[0].backend: hf has no effect in this version.",
        "models[0].device: cuda has no effect in this version.",
        "executor.kv_cache_mode: elastic has no effect in this version.",
        "memory.enable_offload has no effect in this version.",
    )
