"""Memory: estimates beside measurements, what an unload gives back, and three models in a group of 600 MB.

Arguments: ``[MODE ...] [--model FILE] [--gemma FILE] [--peer LLAMA_SERVER]`` with the modes `estimates`,
`release` and `limit`; without one, all run. The docstring of each `memory_MODE.py` says what it measures.
`limit` needs root and control groups, and shows llama-server's router beside ours if its binary is given.
Fails if a figure is beyond its bound.
"""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

import memory_estimates
import memory_limit
import memory_release

GEMMA = "gemma-3-270m-Q4_K_M.gguf"


def main() -> int:
    modes: dict[str, Callable[[argparse.Namespace], bool]] = {
        "estimates": lambda options: memory_estimates.main(options.model, options.gemma),
        "release": lambda options: memory_release.main(options.model),
        "limit": lambda options: memory_limit.main(options.model, options.gemma, options.peer),
    }
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modes", nargs="*", metavar="MODE", help=f"one of {', '.join(modes)}; all if absent")
    parser.add_argument("--model", type=Path, default=os.environ.get("LAYA_TEST_MODEL"))
    parser.add_argument("--gemma", type=Path, default=os.environ.get("LAYA_TEST_GEMMA"))
    parser.add_argument("--peer", type=Path, help="a llama-server binary")
    options = parser.parse_args()
    if unknown := set(options.modes) - set(modes):
        parser.error(f"there is no mode {', '.join(sorted(unknown))}")
    if options.model is None:
        parser.error("name SmolLM2's file with --model")
    options.gemma = options.gemma or Path(options.model).with_name(GEMMA)
    good = [modes[name](options) for name in options.modes or modes]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
