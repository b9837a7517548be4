"""The command line. Without a command it opens the window."""

import argparse
import asyncio
import sys
from pathlib import Path

from laya_desktop import __version__


def main(arguments: list[str]) -> int:
    """Parse and run; returns the exit code. Qt is imported only for the window."""
    if arguments[:1] == ["serve"]:
        from laya_desktop.server.__main__ import main as run_server

        return run_server(arguments[1:])
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if options.command == "serve":
        return main(["serve", *(["--config", str(options.config)] if options.config else []), *rest])
    if rest:
        parser.error(f"unrecognised arguments: {' '.join(rest)}")
    match options.command:
        case "check":
            return _check(options.config)
        case "route":
            from laya_desktop.cli_route import run as run_route

            return run_route(options)
        case "doctor":
            try:
                return asyncio.run(_doctor(options.config))
            except KeyboardInterrupt:
                return 130
        case _:
            from laya_desktop.app import main as run_app

            return run_app(options.config, smoke=options.smoke)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="laya-desktop", description="Run several local language models. Without a command: the window."
    )
    parser.add_argument("--version", action="version", version=f"laya-desktop {__version__}")
    parser.add_argument("--config", type=Path, help="config file to use instead of the user's")
    parser.add_argument("--smoke", action="store_true", help="ask one question in the window, print and quit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("serve", help="the OpenAI-compatible server without a window", add_help=False)
    for name, text in (
        ("check", "read the config file and list what is wrong with it"),
        ("doctor", "decode two tokens with every model and say what is wrong"),
        ("route", "say which model would answer a prompt, and why"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--config", type=Path, default=argparse.SUPPRESS)
        if name == "route":
            _add_route_arguments(command)
    return parser


def _add_route_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("text", nargs="?", help="the prompt")
    command.add_argument(
        "--batch", type=Path, metavar="FILE", help="JSON lines with text and maybe expect_task, expect_model"
    )
    command.add_argument("--json", action="store_true", help="print JSON, one object a line")


def _check(config: Path | None) -> int:
    from laya_desktop.config.store import ConfigStore
    from laya_desktop.core.paths import Paths

    if config is not None and not config.exists():
        print(f"{config} does not exist.")
        return 1
    store = ConfigStore(config or Paths.default().config_file)
    good = store.load()
    for line in (*store.problems, *store.notes):
        print(line)
    if good:
        print(f"{store.path}: in order, {len(store.config.models)} models.")
    return 0 if good else 1


async def _doctor(config: Path | None) -> int:
    """A library that imports may still die on its first batch: only decoding shows that it works."""
    from laya_desktop.config.store import ConfigStore
    from laya_desktop.core.errors import LayaError
    from laya_desktop.core.events import Failed, Finished
    from laya_desktop.core.paths import Paths
    from laya_desktop.core.types import Caller, ChatRequest, Message, Role, Sampling
    from laya_desktop.engine.handle import EngineHandle

    paths = Paths.default()
    store = ConfigStore(config or paths.config_file, paths.data)
    if not store.load():
        return _check(config)
    handle = EngineHandle(store, paths)
    try:
        handle.start()
    except LayaError as error:
        print(error.info.sentence(), file=sys.stderr)
        return 1
    failures = 0
    try:
        for model in handle.models:
            request = ChatRequest(
                id=f"doctor-{model.name}",
                messages=(Message(Role.USER, "Say hello to the doctor."),),
                model=model.name,
                sampling=Sampling(temperature=0.0, max_tokens=2),
                caller=Caller.CLI,
            )
            async for event in handle.stream(request):
                if isinstance(event, Failed):
                    failures += 1
                    print(f"{model.name}: {event.error.sentence()}")
                elif isinstance(event, Finished):
                    print(f"{model.name}: works, {event.usage.completion_tokens} tokens decoded.")
        if not handle.models:
            failures += 1
            print("No model is registered. Add one under 'models:' in config.yaml.")
    finally:
        handle.stop()
    return 1 if failures else 0
