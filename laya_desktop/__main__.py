"""Entry point. Looks at argv only, so that a worker or the server starts without importing Qt."""

import sys


def main() -> int:
    """Dispatch `laya-desktop [worker | serve | check | doctor | route | options]`; returns the exit code."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["worker"]:
        from laya_desktop.worker.main import main as run_worker

        return run_worker()
    from laya_desktop.cli import main as run_cli

    return run_cli(arguments)


if __name__ == "__main__":
    sys.exit(main())
