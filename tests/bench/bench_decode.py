"""Decoding speed of the whole path (server, engine, worker) beside llama-server, in alternating pairs.

Arguments: ``[--peer LLAMA_SERVER] [--pairs N] [--model FILE]``. Both sides serve the same file with the
same threads, a KV cache of one fixed part per stream, full sliding windows and a greedy sampler, and the same
client asks them over HTTP. Speeds are tokens per second between the first and the last token that the client
sees. With a peer it fails if the 95 % interval of the ratio lies below 0.90. Run it on a quiet machine.
"""

import argparse
import contextlib
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

STREAMS = 8
CONTEXT_TOKENS = 1024
NEW_TOKENS = 128
PROMPT_TOKENS = 128
BOUND = 0.90
_FILLER = "and the river ran past the mill while the old miller counted his sacks of grain "


@dataclass
class Answer:
    """Seconds on one clock, token counts as the server reports them. `times` has one entry a chunk."""

    asked: float
    times: list[float]
    prompt_tokens: int
    cached_tokens: int
    tokens: int
    text: str

    @property
    def speed(self) -> float:
        return (self.tokens - 1) / (self.times[-1] - self.times[0])

    def tokens_between(self, start: float, end: float) -> float:
        """A chunk may hold several tokens: all chunks count alike."""
        return self.tokens / len(self.times) * sum(start < at <= end for at in self.times)


class Server:
    """A server process on a free port, asked over HTTP."""

    def __init__(self, command: list[str], port: int, model: str, extra: dict[str, object]) -> None:
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._port = port
        self._model = model
        self._extra = extra
        deadline = time.monotonic() + 120
        while not self._healthy():
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise SystemExit(f"{command[0]} did not start")

    def _healthy(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except OSError:
            threading.Event().wait(0.2)
            return False
        finally:
            connection.close()

    def ask(self, messages: list[dict[str, str]]) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=300)
        body = {
            "model": self._model,
            "messages": messages,
            "max_tokens": NEW_TOKENS,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            **self._extra,
        }
        asked = time.perf_counter()
        connection.request(
            "POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"}
        )
        response = connection.getresponse()
        if response.status != 200:
            raise SystemExit(f"{self._model}: {response.status} {response.read()!r}")
        times: list[float] = []
        text, usage = "", {}
        for line in response:
            if not line.startswith(b"data: {"):
                continue
            data = json.loads(line[6:])
            usage = data.get("usage") or usage
            if data["choices"] and data["choices"][0]["delta"].get("content"):
                times.append(time.perf_counter())
                text += data["choices"][0]["delta"]["content"]
        connection.close()
        details = usage.get("prompt_tokens_details") or {}
        return Answer(
            asked,
            times,
            usage["prompt_tokens"],
            details.get("cached_tokens", 0),
            usage["completion_tokens"],
            text,
        )

    def ask_together(self, prompts: list[list[dict[str, str]]]) -> list[Answer]:
        answers: list[Answer] = []
        threads = [threading.Thread(target=lambda p=p: answers.append(self.ask(p))) for p in prompts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)


def _prompt(server: Server, tokens: int, seed: int) -> list[dict[str, str]]:
    """A chat of exactly `tokens` prompt tokens (or the closest below) that no cache has seen."""
    words = _FILLER.split()
    random.Random(seed).shuffle(words)
    text = f"Story {seed}. Continue it at great length: " + " ".join(words * 12)
    return [{"role": "user", "content": " ".join(text.split()[: tokens - 38])}]


def start_ours(folder: Path, model: Path, threads: int) -> Server:
    port = _free_port()
    config = folder / "config.yaml"
    config.write_text(
        f"models:\n  - {{name: bench, path: {json.dumps(str(model))}}}\n"
        f"executor: {{max_batch_size: {STREAMS}, stream_buffer: {CONTEXT_TOKENS}, threads: {threads}}}\n"
    )
    os.environ["LAYA_HOME"] = str(folder)
    command = [sys.executable, "-m", "laya_desktop.server", "--config", str(config), "--port", str(port)]
    return Server(command, port, "bench", {})


def start_peer(binary: str, model: Path, threads: int) -> Server:
    port = _free_port()
    command = [binary, "-m", str(model), "--port", str(port), "-t", str(threads), "-tb", str(threads)]
    command += ["-c", str(STREAMS * CONTEXT_TOKENS), "-np", str(STREAMS), "--swa-full", "--no-webui"]
    return Server(command, port, "peer", {"samplers": ["temperature"], "cache_prompt": True})


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def one_stream(server: Server, seed: int) -> float:
    return server.ask(_prompt(server, PROMPT_TOKENS, seed)).speed


def together(server: Server, seed: int) -> tuple[float, float]:
    """Eight streams at once: all their tokens over all their time, prompts included, and the speed while
    all eight decode."""
    answers = server.ask_together([_prompt(server, PROMPT_TOKENS, seed * 100 + n) for n in range(STREAMS)])
    total = sum(answer.tokens for answer in answers)
    wall = max(answer.times[-1] for answer in answers) - min(answer.asked for answer in answers)
    start = max(answer.times[0] for answer in answers)
    end = min(answer.times[-1] for answer in answers)
    return total / wall, sum(answer.tokens_between(start, end) for answer in answers) / (end - start)


def report(figure: str, ours: list[float], peers: list[float], unit: str) -> bool:
    """Print one figure; False if the whole 95 % interval of the paired ratio lies below the bound."""
    row: dict[str, object] = {
        "bench": "decode",
        "figure": figure,
        "value": round(statistics.median(ours), 2),
        "unit": unit,
        "n": len(ours),
    }
    good = True
    if peers:
        ratios = [own / peer for own, peer in zip(ours, peers, strict=True)]
        low, high = _interval(ratios)
        row |= {
            "peer": "llama-server",
            "peer_value": round(statistics.median(peers), 2),
            "ratio": round(statistics.median(ratios), 3),
            "ratio_95": [round(low, 3), round(high, 3)],
        }
        good = high >= BOUND
    print(json.dumps(row), flush=True)
    return good


def _pairs(servers: list[Server], pairs: int, measure: Callable[[Server, int], T]) -> list[list[T]]:
    """Measure every server `pairs` times; whoever goes first changes from pair to pair."""
    results: list[list[T]] = [[] for _ in servers]
    for pair in range(1, pairs + 1):
        order = list(range(len(servers)))
        for index in order if pair % 2 else reversed(order):
            results[index].append(measure(servers[index], pair))
    return results


def _report_pairs(figure: str, sides: list[list[float]]) -> bool:
    return report(figure, sides[0], sides[1] if len(sides) > 1 else [], "tokens/s")


def _interval(values: list[float]) -> tuple[float, float]:
    """95 % interval of the median by 2,000 bootstrap samples."""
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(2000))
    return medians[49], medians[1949]


def second_turn(server: Server) -> None:
    """The second prompt of a chat computes its new tokens only: print both counts."""
    chat = [{"role": "user", "content": "Tell me about rivers and the mills that stand on them."}]
    answer = server.ask(chat)
    chat += [{"role": "assistant", "content": answer.text}, {"role": "user", "content": "And about lakes?"}]
    again = server.ask(chat)
    for figure, value in (
        ("second_turn_prompt", again.prompt_tokens),
        ("second_turn_computed", again.prompt_tokens - again.cached_tokens),
    ):
        print(json.dumps({"bench": "decode", "figure": figure, "value": value, "unit": "tokens", "n": 1}))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="a llama-server binary")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--model", type=Path, default=os.environ.get("LAYA_TEST_MODEL"))
    options = parser.parse_args()
    if options.model is None:
        parser.error("name a model file with --model")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        servers = [start_ours(Path(folder), options.model, options.threads)]
        running.callback(servers[0].stop)
        if options.peer:
            servers.append(start_peer(options.peer, options.model, options.threads))
            running.callback(servers[1].stop)
        for server in servers:
            one_stream(server, 0)
        alone, both = _pairs(servers, options.pairs, one_stream), _pairs(servers, options.pairs, together)
        good = _report_pairs("one_stream", alone)
        good &= _report_pairs("eight_streams", [[total for total, _ in side] for side in both])
        good &= _report_pairs("eight_streams_decoding", [[speed for _, speed in side] for side in both])
        second_turn(servers[0])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
