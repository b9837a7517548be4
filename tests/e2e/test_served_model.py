"""The starter model behind the real server in a process of its own, as a client sees it."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import openai
import psutil
import pytest

pytestmark = [pytest.mark.model, pytest.mark.slow]

DEADLINE_S = 60
StartServer = Callable[..., "Served"]


class Served:
    """A running server process and a client for it."""

    def __init__(self, folder: Path, config: str) -> None:
        file = folder / "config.yaml"
        file.write_text(config)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "laya_desktop.server", "--config", str(file), "--port", "0"],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"LAYA_HOME": str(folder / "home")},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.url = line.rsplit(" ", 1)[-1].strip()
        self.client = openai.OpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0)

    def workers(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()

    def ask(self, text: str, **options: object) -> openai.types.chat.ChatCompletion:
        return self.client.chat.completions.create(
            model="auto", messages=[{"role": "user", "content": text}], temperature=0, **options
        )

    def stop(self) -> None:
        self.client.close()
        self.process.terminate()
        self.process.wait(DEADLINE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def serve(tmp_path: Path, starter_model: Path) -> Iterator[StartServer]:
    servers: list[Served] = []

    def start(more: str = "", **models: str) -> Served:
        entries = {"smol": str(starter_model), **models}
        lines = "".join(f"  - {{name: {name}, path: {json.dumps(path)}}}\n" for name, path in entries.items())
        servers.append(Served(tmp_path, f"models:\n{lines}{more}"))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def test_the_openai_client_streams_an_answer(serve: StartServer) -> None:
    server = serve()
    stream = server.client.chat.completions.create(
        model="auto",
        messages=[{"role": "user", "content": "Where is the Eiffel Tower?"}],
        temperature=0,
        max_tokens=40,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert "Paris" in text
    assert chunks[0].model == "smol"
    assert len(chunks) > 5, "it comes in pieces"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.prompt_tokens == 37


def test_a_follow_up_computes_only_what_is_new(serve: StartServer) -> None:
    server = serve()
    turns = [{"role": "user", "content": "Where is the Eiffel Tower?"}]
    first = server.client.chat.completions.create(model="smol", messages=turns, temperature=0, max_tokens=40)
    turns += [
        {"role": "assistant", "content": first.choices[0].message.content},
        {"role": "user", "content": "And the Louvre?"},
    ]
    second = server.client.chat.completions.create(model="smol", messages=turns, temperature=0, max_tokens=5)
    assert second.usage is not None
    assert second.usage.prompt_tokens_details is not None
    computed = second.usage.prompt_tokens - (second.usage.prompt_tokens_details.cached_tokens or 0)
    assert computed < 20 < second.usage.prompt_tokens


def test_the_context_limit_is_told_before_the_first_byte(serve: StartServer) -> None:
    server = serve("executor: {stream_buffer: 256}\n")
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError) as caught:
            server.ask("hello " * 600, stream=stream)
        assert caught.value.code == "context_length_exceeded"
        assert "256" in str(caught.value)
    empty = server.ask("", max_tokens=1).usage
    assert empty is not None
    words = 255 - empty.prompt_tokens
    almost = server.ask("hello" + " hello" * (words - 1))
    assert almost.usage is not None
    assert almost.usage.prompt_tokens == 255
    assert almost.usage.completion_tokens == 1
    assert almost.choices[0].finish_reason == "length"
    with pytest.raises(openai.BadRequestError):
        server.ask("hello" + " hello" * words)


def test_a_worker_killed_in_mid_stream_ends_the_stream_with_its_cause(serve: StartServer) -> None:
    server = serve()
    stream = server.client.chat.completions.create(
        model="smol", messages=[{"role": "user", "content": "Count to one thousand."}], stream=True
    )
    seen = iter(stream)
    for _ in range(3):
        next(seen)
    (worker,) = server.workers()
    worker.send_signal(signal.SIGKILL)
    with pytest.raises(openai.APIError, match="SIGKILL"):
        list(seen)
    assert server.ask("Where is the Eiffel Tower?", max_tokens=20).choices[0].message.content


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_killing_the_server_leaves_no_worker(serve: StartServer) -> None:
    server = serve()
    server.ask("hi", max_tokens=2)
    workers = server.workers()
    assert workers
    server.process.kill()
    _gone, alive = psutil.wait_procs(workers, timeout=DEADLINE_S)
    assert not alive


def test_broken_files_name_their_own_cause_and_hurt_nobody(
    serve: StartServer, tmp_path: Path, starter_model: Path
) -> None:
    truncated = tmp_path / "truncated.gguf"
    truncated.write_bytes(starter_model.read_bytes()[:1_000_000])
    page = tmp_path / "page.gguf"
    page.write_text("<!DOCTYPE html><title>404</title>")
    server = serve(truncated=str(truncated), page=str(page), absent=str(tmp_path / "absent.gguf"))
    for name, cause in (("truncated", "truncated"), ("page", "HTML"), ("absent", "absent.gguf")):
        with pytest.raises(openai.APIStatusError, match=cause) as caught:
            server.client.chat.completions.create(model=name, messages=[{"role": "user", "content": "hi"}])
        assert caught.value.code in ("model_load_failed", "model_file_missing")
    assert server.ask("hi", max_tokens=2).model == "smol"


def test_many_clients_at_once_each_get_their_own_answer(serve: StartServer) -> None:
    server = serve()
    questions = ["Where is the Eiffel Tower?", "What is 2+2?"] * 4
    alone = {text: server.ask(text, max_tokens=12).choices[0].message.content for text in set(questions)}
    answers: list[tuple[str, str | None]] = []
    threads = [
        threading.Thread(
            target=lambda text=text: answers.append(
                (text, server.ask(text, max_tokens=12).choices[0].message.content)
            )
        )
        for text in questions
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert len(answers) == len(questions)
    for text, answer in answers:
        # A batch rounds differently from a single stream: the first words have to agree.
        assert answer is not None
        assert answer.split()[:3] == (alone[text] or "").split()[:3]


def test_a_client_that_leaves_frees_its_slot(serve: StartServer) -> None:
    server = serve("executor: {max_batch_size: 1}\n")
    body = {
        "model": "smol",
        "messages": [{"role": "user", "content": "Count to one thousand."}],
        "stream": True,
    }
    for _ in range(5):
        with httpx.stream(
            "POST", f"{server.url}/v1/chat/completions", json=body, timeout=DEADLINE_S
        ) as reply:
            next(reply.iter_lines())
    assert server.ask("Where is the Eiffel Tower?", max_tokens=10).choices[0].message.content
