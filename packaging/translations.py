"""Collect the window's strings and compile the translations: python packaging/translations.py.

Run it after a string changed, translate what resources/translations/laya_zh_CN.ts lists as unfinished, and
run it again. The compiled files are committed, so that a checkout runs without this step.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "resources" / "translations"


def main() -> int:
    tools = Path(sys.executable).parent
    sources = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "laya_desktop" / "ui").rglob("*.py"))
    # English needs its plural forms only; the rest is in the source.
    for name, options in (("laya_en", ["-pluralonly"]), ("laya_zh_CN", [])):
        target = str(FOLDER / f"{name}.ts")
        language = ["-source-language", "en", "-target-language", name.removeprefix("laya_")]
        update = [str(tools / "pyside6-lupdate"), *options, *language, "-locations", "none", "-no-obsolete"]
        subprocess.run([*update, *sources, "-ts", target], cwd=ROOT, check=True)
        subprocess.run(
            [str(tools / "pyside6-lrelease"), target, "-qm", str(FOLDER / f"{name}.qm")], check=True
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
