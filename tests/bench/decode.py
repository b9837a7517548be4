"""Decoding speed of the whole path (server, engine, worker) beside llama-server, in alternating pairs.

Usage: ``decode.py [--peer LLAMA_SERVER] [--pairs N] [--model FILE]``. Both sides serve the same file with the
same threads, a KV cache of one fixed part per stream, full sliding windows and a greedy sampler, and the same
client asks them over HTTP. Speeds are tokens per second between the first and the last token that the client
sees. With a peer it fails if the 95 % interval of the ratio lies below 0.90. Run it on a quiet machine.
"""

import argparse
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
from dataclasses import dataclass
from pathlib import Path

STREAMS = 8
CONTEXT_TOKENS = 1024
NEW_TOKENS = 128
PROMPT_TOKENS = 128
BOUND = 0.90
_FILLER = "and the river ran past the mill while the old miller counted his sacks of grain "


@dataclass
class Answer:
    """Seconds on one clock, token counts as the server reports them."""

    first: float
    last: float
    prompt_tokens: int
    cached_tokens: int
    tokens: int
    text: str

    @property
    def speed(self) -> float:
        return (self.tokens - 1) / (self.last - self.first)


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
        connection.request(
            "POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"}
        )
        response = connection.getresponse()
        if response.status != 200:
            raise SystemExit(f"{self._model}: {response.status} {response.read()!r}")
        first = last = 0.0
        text, usage = "", {}
        for line in response:
            if not line.startswith(b"data: {"):
                continue
            data = json.loads(line[6:])
            usage = data.get("usage") or usage
            if data["choices"] and data["choices"][0]["delta"].get("content"):
                last = time.perf_counter()
                first = first or last
                text += data["choices"][0]["delta"]["content"]
        connection.close()
        details = usage.get("prompt_tokens_details") or {}
        return Answer(
            first,
            last,
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


def together(server: Server, seed: int) -> float:
    answers = server.ask_together([_prompt(server, PROMPT_TOKENS, seed * 100 + n) for n in range(STREAMS)])
    span = max(answer.last for answer in answers) - min(answer.first for answer in answers)
    return sum(answer.tokens for answer in answers) / span


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
    good = True
    with tempfile.TemporaryDirectory() as folder:
        servers = [start_ours(Path(folder), options.model, options.threads)]
        if options.peer:
            servers.append(start_peer(options.peer, options.model, options.threads))
        try:
            for server in servers:
                one_stream(server, 0)
            for figure, measure in (("one_stream", one_stream), ("eight_streams", together)):
                speeds: list[list[float]] = [[] for _ in servers]
                for pair in range(1, options.pairs + 1):
                    # Whoever goes first changes from pair to pair.
                    for index in (range(len(servers)), reversed(range(len(servers))))[pair % 2]:
                        speeds[index].append(measure(servers[index], pair))
                good &= report(figure, speeds[0], speeds[1] if options.peer else [], "tokens/s")
            second_turn(servers[0])
        finally:
            for server in servers:
                server.stop()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
