"""`Client.route` over HTTP beside a bare route of the same server stack, in alternating blocks.

Arguments: ``[--calls N] [--model FILE]``. Ours is ``python -m laya_desktop.server`` with two models,
none of them loaded, asked by `laya_desktop.client.Client`. The peer is an ASGI function that answers ``{}``
at once, behind the same listener and connection classes, asked by http.client; both keep their connection. At
most 0.10 ms may lie between the means. In the second row the peer is asked by our client, with the same body:
what lies between is what gate, body and decision cost. Run it on a quiet machine.
"""

import argparse
import asyncio
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from laya_desktop.client import Client

BOUND_MS = 0.10
BLOCKS = 20
WARM_UP_CALLS = 300
ARTICLE = {"article_mean": 0.281, "article_p99": 0.642}
"""What the article measured for a decision through its client, in ms."""
_PROMPTS = (
    "ping",
    "Where is the Eiffel Tower?",
    "你好，今天天气怎么样？",
    "Write a function that checks whether a string is a palindrome.",
)
_BODY = json.dumps({"prompt": _PROMPTS[1], "model": "auto", "features": None}).encode()


async def _bare(scope: Any, receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass
    headers = [(b"content-type", b"application/json"), (b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"{}"})


async def _serve_bare() -> None:
    from laya_desktop.config.schema import Config
    from laya_desktop.server import listener

    listener.build_app = lambda handle: _bare  # type: ignore[assignment,return-value]
    server = await listener.Listener.open(SimpleNamespace(config=Config()), "127.0.0.1", 0)  # type: ignore[arg-type]
    print(f"listens on {server.url}", flush=True)
    await asyncio.Event().wait()


class Server:
    """A server process that has printed its address."""

    def __init__(self, *arguments: str, home: Path) -> None:
        environment = os.environ | {"LAYA_HOME": str(home)}
        self._process = subprocess.Popen(
            [sys.executable, *arguments], stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self._process.stdout is not None
        words = self._process.stdout.readline().split()
        if not words:
            raise SystemExit(f"{' '.join(arguments)} did not start")
        self.url = words[-1]

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)


def plain(url: str) -> Callable[[int], None]:
    """Calls of the peer by http.client."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)

    def call(number: int) -> None:
        connection.request("GET", "/")
        response = connection.getresponse()
        response.read()

    return call


def routed(url: str) -> Callable[[int], None]:
    """Calls of `Client.route`."""
    client = Client(url, timeout_s=10)

    def call(number: int) -> None:
        client.route(_PROMPTS[number % len(_PROMPTS)])

    return call


def posted(url: str) -> Callable[[int], None]:
    """Calls of the peer by our client."""
    client = Client(url, timeout_s=10)

    def call(number: int) -> None:
        client._repeatable("POST", "/", _BODY)

    return call


def block(call: Callable[[int], None], calls: int) -> list[float]:
    """Milliseconds of each call."""
    times = []
    for number in range(calls):
        started = time.perf_counter()
        call(number)
        times.append((time.perf_counter() - started) * 1e3)
    return times


def interval(values: list[float]) -> list[float]:
    """95 % interval of the mean by 2,000 bootstrap samples."""
    draw = random.Random(1)
    means = sorted(statistics.fmean(draw.choices(values, k=len(values))) for _ in range(2000))
    return [round(means[49], 4), round(means[1949], 4)]


def p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98]


def report(
    figure: str, peer_name: str, ours: list[list[float]], peers: list[list[float]]
) -> dict[str, object]:
    """One row; times in ms."""
    own = [value for part in ours for value in part]
    peer = [value for part in peers for value in part]
    differences = [statistics.fmean(a) - statistics.fmean(b) for a, b in zip(ours, peers, strict=True)]
    return {
        "bench": "http",
        "figure": figure,
        "value": round(statistics.fmean(own), 4),
        "p99": round(p99(own), 4),
        "unit": "ms",
        "n": len(own),
        "peer": peer_name,
        "peer_value": round(statistics.fmean(peer), 4),
        "peer_p99": round(p99(peer), 4),
        "difference": round(statistics.fmean(own) - statistics.fmean(peer), 4),
        "difference_95": interval(differences),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--model", type=Path, default=os.environ.get("LAYA_TEST_MODEL"))
    parser.add_argument("--bare", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare:
        asyncio.run(_serve_bare())
    if options.model is None:
        parser.error("name a GGUF file with --model or LAYA_TEST_MODEL")
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "config.yaml")
        file = json.dumps(str(options.model.resolve()))
        config.write_text(f"models:\n  - {{name: small, path: {file}}}\n  - {{name: coder, path: {file}}}\n")
        servers = [
            Server("-m", "laya_desktop.server", "--config", str(config), "--port", "0", home=Path(folder)),
            Server(__file__, "--bare", home=Path(folder, "bare")),
        ]
        try:
            calls = [routed(servers[0].url), plain(servers[1].url), posted(servers[1].url)]
            blocks: list[list[list[float]]] = [[] for _ in calls]
            for call in calls:
                block(call, WARM_UP_CALLS)
            for turn in range(BLOCKS):
                # Whoever goes first changes from turn to turn.
                for index in (range(len(calls)), reversed(range(len(calls))))[turn % 2]:
                    blocks[index].append(block(calls[index], max(2, options.calls // BLOCKS)))
        finally:
            for server in servers:
                server.stop()
    row = report("client_route", "bare ASGI route, http.client", blocks[0], blocks[1])
    row |= {"bound": BOUND_MS} | ARTICLE
    print(json.dumps(row))
    print(json.dumps(report("server_side", "bare ASGI route, our client", blocks[0], blocks[2])))
    return 0 if float(str(row["difference"])) <= BOUND_MS else 1


if __name__ == "__main__":
    sys.exit(main())
