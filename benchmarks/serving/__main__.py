"""The serving path beside its peers, on one machine in one run.

`python -m benchmarks.serving [--json] [--quick] [--only CASE ...] [--profile FOLDER] [--models FOLDER]`.

It needs wrk (`apt-get install wrk`), py-spy for `--profile`, and the extra develop to export the graphs; without wrk or
py-spy it ends with exit status 2. All servers run on 127.0.0.1, with one worker and one thread of ONNX Runtime unless a
case says otherwise. Cases with several servers check first that these answer alike. Nothing is downloaded.

Where `--models` names a folder with the graphs of an earlier run, they are not exported again. `--profile` without
`--only` makes the profile alone.
"""

import argparse
import io
import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from benchmarks.machine import describe
from benchmarks.serving.compute import measure_compute, measure_workers
from benchmarks.serving.goals import beside_goals, show_goals
from benchmarks.serving.logits import measure_logits
from benchmarks.serving.overhead import measure_burst, measure_longest, measure_overhead
from benchmarks.serving.profile import check_profiler, measure_profile
from benchmarks.serving.servers import MEANINGS
from benchmarks.serving.start import measure_start
from benchmarks.serving.wrk import check_wrk
from lifelong_core.values.errors import LifelongError

UNUSABLE = 2
"""Exit status where the machine lacks a program."""
CASES: dict[str, Callable[..., dict[str, Any]]] = {
    "overhead": measure_overhead,
    "burst": measure_burst,
    "longest": measure_longest,
    "compute": measure_compute,
    "logits": measure_logits,
    "workers": measure_workers,
    "start": measure_start,
}
PACKAGES = ("bentoml", "uvicorn", "uvloop", "httptools", "starlette", "onnxruntime", "pillow", "simplejpeg")


def main() -> int:
    """Measure, print tables, and with --json one JSON object at the end."""
    chosen = _arguments()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # tables are of use when the run is cut off
    try:
        check_wrk()
        if chosen.profile is not None:
            check_profiler()
    except LifelongError as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    try:
        figures = measure(chosen)
    except LifelongError as error:
        print(error, file=sys.stderr)
        return 1
    if chosen.json:
        print(json.dumps(figures))
    return 0


def measure(chosen: argparse.Namespace) -> dict[str, Any]:
    """Figures of the chosen cases, and the goals beside them."""
    machine = describe(*PACKAGES)
    print(f"{machine['processor']}, {machine['cores']} cores, {machine['versions']}")
    for name, meaning in MEANINGS.items():
        print(f"{name}: {meaning}")
    names = chosen.only or ([] if chosen.profile else list(CASES))
    figures: dict[str, Any] = {"machine": machine, "cases": {}}
    with tempfile.TemporaryDirectory() if chosen.models is None else nullcontext(chosen.models) as folder:
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            figures["cases"][name] = CASES[name](folder, is_quick=chosen.quick)
        if chosen.profile is not None:
            figures["profile"] = measure_profile(folder, chosen.profile, is_quick=chosen.quick)
    figures["goals"] = beside_goals(figures["cases"])
    if figures["goals"]:
        show_goals(figures["goals"])
    return figures


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    parser.add_argument("--quick", action="store_true", help="short times, few rounds")
    parser.add_argument("--only", nargs="+", choices=CASES, metavar="CASE", help=f"of {', '.join(CASES)}")
    parser.add_argument("--profile", type=Path, help="folder for a profile of our worker")
    parser.add_argument("--models", type=Path, help="folder of the exported graphs, which stay there")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
