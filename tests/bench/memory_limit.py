"""Three models in a group of 600 MB: nothing is killed and everybody gets an answer or a typed error.

The model files are copied inside the group, so that their pages count there; then the server starts in it.
Every model gets a prompt of two characters and two of 6,000 tokens, one after the other, then 100 short
requests go to the models in turn. The same is done without a limit, for the time that each request takes, and
in a group of the same size with llama-server's router, if its binary is given. Needs root and control groups.
"""

import contextlib
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

LIMIT_BYTES = 600 * 1000 * 1000
LONG_TOKENS = 6_000
MIXED_REQUESTS = 100
SLOWER_BOUND = 3.0
_NEW_TOKENS = 8
_TIMEOUT_S = 600
_START_S = 60
_V1 = Path("/sys/fs/cgroup/memory")
_V2 = Path("/sys/fs/cgroup")
_WORDS = (
    *("the", "quick", "brown", "fox", "ran", "past", "the", "old", "mill", "and", "saw"),
    *("a", "red", "house", "on", "the", "green", "hill"),
)
_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<start_of_turn>"
    "{{ 'model' if message.role == 'assistant' else message.role }}\n{{ message.content }}<end_of_turn>\n"
    "{% endfor %}<start_of_turn>model\n"
)


@dataclass(frozen=True)
class Outcome:
    """What became of a request: `status` 0 means that the connection broke."""

    what: str
    status: int
    code: str
    seconds: float

    @property
    def typed(self) -> bool:
        return self.status == 200 or bool(self.code)


class Group:
    """A control group with a memory limit, version 1 or 2."""

    def __init__(self, limit: int) -> None:
        first = (_V1 / "memory.limit_in_bytes").exists()
        self.folder = Path(tempfile.mkdtemp(prefix="laya-bench-", dir=_V1 if first else _V2))
        (self.folder / ("memory.limit_in_bytes" if first else "memory.max")).write_text(str(limit))
        self._events = self.folder / ("memory.oom_control" if first else "memory.events")

    @property
    def members(self) -> Path:
        return self.folder / "cgroup.procs"

    @property
    def kills(self) -> int:
        counts = dict(line.split() for line in self._events.read_text().splitlines())
        return int(counts.get("oom_kill", 0))

    def close(self) -> None:
        self.folder.rmdir()


def available() -> str:
    """Why no group can be made here; "" if one can."""
    try:
        Group(LIMIT_BYTES).close()
    except OSError as error:
        return f"no control group can be made here: {error}"
    return ""


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextlib.contextmanager
def _server(
    command: Sequence[str], port: int, files: dict[str, Path], folder: Path, group: Group | None
) -> Iterator[None]:
    """Copy the models and start the server, both inside the group."""
    copies = " && ".join(f'cp "{source}" "{folder / name}"' for name, source in files.items())
    joins = f'echo $$ > "{group.members}" && ' if group else ""
    log = (folder / "server.log").open("wb")
    process = subprocess.Popen(
        ["sh", "-c", f'{joins}{copies} && exec "$@"', "sh", *command],
        stdout=log,
        stderr=log,
        start_new_session=True,
        env=os.environ | {"LAYA_HOME": str(folder / "home")},
    )
    try:
        deadline = time.monotonic() + _START_S
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{command[0]} did not start: {(folder / 'server.log').read_text()[-2000:]}")
        yield
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        log.close()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        time.sleep(0.1)
        return False
    return True


def _ask(port: int, what: str, model: str, prompt: str) -> Outcome:
    body = {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": _NEW_TOKENS,
        "temperature": 0,
    }
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    started = time.perf_counter()
    status, code = 0, ""
    try:
        connection.request(
            "POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"}
        )
        response = connection.getresponse()
        status, answer = response.status, json.loads(response.read() or b"{}")
        if status != 200:
            error = answer.get("error") or {}
            code = str(error.get("code") or error.get("type") or "")
    except (OSError, http.client.HTTPException, ValueError):
        status = 0
    finally:
        connection.close()
    return Outcome(what, status, code, time.perf_counter() - started)


def _long_prompt(seed: int) -> str:
    """About `LONG_TOKENS` tokens; another text for every seed, so that nothing computed is used twice."""
    return " ".join(
        _WORDS[(at * (seed * 2 + 1) + at // 17 + seed) % len(_WORDS)] for at in range(LONG_TOKENS - 60)
    )


def _requests(models: Sequence[str], mixed: int) -> Iterator[tuple[str, str, str]]:
    for index, model in enumerate(models):
        yield f"{model} short", model, "Hi"
        yield f"{model} long 1", model, _long_prompt(2 * index)
        yield f"{model} long 2", model, _long_prompt(2 * index + 1)
    for number in range(mixed):
        model = models[number % len(models)]
        yield f"mixed {number} {model}", model, f"Say something about the number {number}."


def _ours(folder: Path, port: int, models: Sequence[str]) -> list[str]:
    entries = [
        {"name": name, "path": str(folder / f"{name}.gguf")}
        | ({"chat_template": _TEMPLATE} if name == "gemma" else {})
        for name in models
    ]
    config = {"models": entries, "executor": {"stream_buffer": 8192}, "server": {"port": port}}
    (folder / "config.yaml").write_text(json.dumps(config))
    return [
        sys.executable,
        "-m",
        "laya_desktop.server",
        "--config",
        str(folder / "config.yaml"),
        "--port",
        str(port),
    ]


def _peers(binary: Path, folder: Path, port: int) -> list[str]:
    return [
        str(binary),
        "--models-dir",
        str(folder),
        "--models-max",
        "3",
        "--port",
        str(port),
        "--host",
        "127.0.0.1",
    ]


def _run(binary: Path | None, files: dict[str, Path], limited: bool, mixed: int) -> tuple[list[Outcome], int]:
    """All outcomes, and how many processes the kernel killed."""
    folder = Path(tempfile.mkdtemp(prefix="laya-limit-"))
    group = Group(LIMIT_BYTES) if limited else None
    models = [name.removesuffix(".gguf") for name in files]
    port = _free_port()
    try:
        command = _peers(binary, folder, port) if binary else _ours(folder, port, models)
        with _server(command, port, files, folder, group):
            outcomes = [_ask(port, *request) for request in _requests(models, mixed)]
        return outcomes, group.kills if group else 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if group is not None:
            group.close()


def _row(figure: str, outcomes: Sequence[Outcome], kills: int) -> dict[str, object]:
    long = [outcome.seconds for outcome in outcomes if "long" in outcome.what]
    return {
        "bench": "memory",
        "figure": figure,
        "value": kills,
        "unit": "kills",
        "n": len(outcomes),
        "answered": sum(outcome.status == 200 for outcome in outcomes),
        "refused": sum(outcome.status != 200 and outcome.typed for outcome in outcomes),
        "broken": sum(not outcome.typed for outcome in outcomes),
        "codes": sorted({outcome.code for outcome in outcomes if outcome.code}),
        "long_prompt_s": [round(min(long), 1), round(max(long), 1)],
    }


def main(model: Path, gemma: Path, peer: Path | None, mixed: int = MIXED_REQUESTS) -> bool:
    """Print the rows; False if something was killed, broke or took too long."""
    if why := available():
        print(json.dumps({"bench": "memory", "figure": "limit_600_mb", "left_out": why}))
        return True
    files = {"smol.gguf": model, "smol-again.gguf": model, "gemma.gguf": gemma}
    free, _ = _run(None, files, limited=False, mixed=mixed)
    ours, kills = _run(None, files, limited=True, mixed=mixed)
    ratios = {
        one.what: one.seconds / max(other.seconds, 0.5)  # below half a second nobody waits
        for one, other in zip(ours, free, strict=True)
        if one.status == other.status == 200
    }
    worst = max(ratios, key=lambda what: ratios[what], default="")
    row = _row("limit_600_mb", ours, kills) | {
        "slowest": worst,
        "slowest_ratio": round(ratios.get(worst, 0.0), 2),
        "bound_ratio": SLOWER_BOUND,
        "without_limit_long_s": _row("", free, 0)["long_prompt_s"],
    }
    print(json.dumps(row), flush=True)
    if peer is not None:
        theirs, peer_kills = _run(peer, files, limited=True, mixed=mixed)
        print(json.dumps(_row("limit_600_mb_llama_server_router", theirs, peer_kills)), flush=True)
    return (
        kills == 0
        and all(outcome.typed for outcome in ours)
        and max(ratios.values(), default=0) <= SLOWER_BOUND
    )
