"""Start of the desktop app: time until the window is painted, and memory of window and engine alone.

Arguments: ``[--runs N]``. Each run is a process of its own with an empty data folder and
the server on, as it is for a user; the first one warms the caches and does not count. Bounds: 1.5 s from the
start of the process to the first paint (median), 180 MB of proportional set size 5 s later (largest).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

VISIBLE_BOUND_S = 1.5
PSS_BOUND_MB = 180
_SETTLE_MS = 5000


def child() -> int:
    """Run the app, print one JSON line of measurements, quit."""
    import psutil
    from PySide6.QtCore import QEvent, QObject, QTimer

    from laya_desktop.app import DesktopApp
    from laya_desktop.core.paths import Paths

    paths = Paths.default().create()
    paths.config_file.write_text("server: {port: 0}\n")
    app = DesktopApp(paths, paths.config_file)
    process = psutil.Process()

    class FirstPaint(QObject):
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            if event.type() is QEvent.Type.Paint:
                watched.removeEventFilter(self)
                figures["visible_s"] = time.time() - process.create_time()
                QTimer.singleShot(_SETTLE_MS, settle)
            return False

    def settle() -> None:
        figures["pss_mb"] = process.memory_full_info().pss / 1e6
        app.window.close()

    figures: dict[str, float] = {}
    watcher = FirstPaint()
    app.window.installEventFilter(watcher)
    code = app.run()
    print(json.dumps(figures))
    return code


def _run_once() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"LAYA_HOME": home}
        result = subprocess.run(
            [sys.executable, str(Path(__file__)), "--child"],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=60,
        )
    figures: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child()
    runs = [_run_once() for _ in range(options.runs + 1)][1:]
    visible = statistics.median(run["visible_s"] for run in runs)
    pss = max(run["pss_mb"] for run in runs)
    for figure, value, unit, bound in (
        ("window_visible", visible, "s", VISIBLE_BOUND_S),
        ("memory_without_models", pss, "MB", PSS_BOUND_MB),
    ):
        row = {"bench": "start", "figure": figure, "value": round(value, 3), "unit": unit, "n": len(runs)}
        print(json.dumps(row | {"bound": bound}))
    return 0 if visible <= VISIBLE_BOUND_S and pss <= PSS_BOUND_MB else 1


if __name__ == "__main__":
    sys.exit(main())
