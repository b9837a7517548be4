"""Set up, run and test Laya Desktop from a checkout. Needs Python only.

python3 packaging/dev.py run [ARGS]                    open the app
    --smoke                                            ask one question in the window, print the answer, close
    --rebuild-engine                                   compile llama.cpp anew first
python3 packaging/dev.py test [PYTEST ARGS]            run every check and test
python3 packaging/dev.py bench NAME [--peer PATH]      run one benchmark of tests/bench
python3 packaging/dev.py screenshots OUT_DIR           save a picture of every page

The first call installs what is needed into .venv and the user cache folder; later calls start at once.
"""

import sys


def main():  # type: () -> int
    if sys.version_info < (3, 11):  # noqa: UP036 - older versions must reach this sentence
        found = ".".join(str(number) for number in sys.version_info[:3])
        print("Laya Desktop needs Python 3.11 or later, and this is Python " + found + ".", file=sys.stderr)
        print(
            "Install a newer Python and call this script with it, as in: python3.12 packaging/dev.py run",
            file=sys.stderr,
        )
        return 1
    from devtools.commands import dispatch

    return dispatch(sys.argv[1:], __doc__ or "")


if __name__ == "__main__":
    sys.exit(main())
