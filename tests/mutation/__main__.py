"""Makes deliberate faults, a random sample over all packages of the product, and counts what the unit tests catch.

    python -m tests.mutation --seed 1 [--faults 40] [--only N] [--seconds 240] [--processes 2] [--json]

Each fault is made in a clone of the last commit. The unit tests run, the nearest files first, until one fails or the
limit of processor time is reached (other work on the machine does not count). A fault is caught if a test fails with it
and passes without it. Compare only shares: another commit has other faults.
"""

import argparse
import difflib
import importlib.util
import json
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil

from tests.mutation.faults import Fault, sample

ROOT = Path(__file__).resolve().parents[2]
_TEST_SECONDS = 120
_MIRRORS = {"service": "", "monitor": "", "lifelong_core": "", "commands": "", "lifelong": "cli"}
_MIRRORS |= {"lifelong_service": "service", "lifelong_monitor": "monitor"}
"""Folders of the product to those of the unit tests, where the names differ."""
_FAILURE = re.compile(r"^(?:FAILED|ERROR) (tests/\S+?\.py\S*)", re.MULTILINE)


class Clone:
    """A clone of the last commit, in which one process of tests runs at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(folder)], check=True)
        self._passing: dict[str, bool] = {}
        self._environment = {
            "LIFELONG_SHARED_DATA": str(ROOT.parent / "shared" / "data"),
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (folder, folder / "service", folder / "monitor"))),
        }

    def judge(self, fault: Fault, tests: list[str], seconds: float) -> tuple[str | None, int]:
        """Run tests with the fault in growing batches: the first test that fails, and the number of files that ran."""
        source = (self.folder / fault.file).read_text()
        left, size = tests, 2
        while left and seconds > 0:
            batch, left = left[:size], left[size:]
            self._write(fault.file, fault.apply(source))
            test, used = self._failure(batch, seconds)
            self._write(fault.file, source)
            seconds -= used
            if test is None:
                size *= 2
            elif self._passes(test.partition("[")[0]):
                return test, len(tests) - len(left)
            else:
                file = test.partition("::")[0]  # it fails without the fault, too: run the others
                left = [other for other in batch if other != file] + left
        return None, len(tests) - len(left)

    def _write(self, file: str, source: str) -> None:
        path = self.folder / file
        path.write_text(source)
        # Python would use the bytecode of another version with the same size and second.
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)

    def _passes(self, test: str) -> bool:
        if test not in self._passing:
            self._passing[test] = self._failure([test], sys.maxsize)[0] is None
        return self._passing[test]

    def _failure(self, tests: list[str], seconds: float) -> tuple[str | None, float]:
        """The first test that fails (None if none does within the time), and the processor time that was used."""
        options = ["-x", "-q", "-p", "no:cacheprovider", f"--timeout={_TEST_SECONDS}", "--tb=no", "-rfE"]
        process = psutil.Popen(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        used = 0.0
        while True:
            try:
                output, _ = process.communicate(timeout=1)
                break
            except subprocess.TimeoutExpired:
                before, used = used, sum(process.cpu_times()[:4])
                if before <= seconds < used:
                    process.send_signal(signal.SIGINT)  # pytest then ends the processes of its fixtures
        if process.returncode == 0 or used > seconds:
            return None, used
        failed = _FAILURE.search(output)
        # Without such a line: a crash, or a conftest that fails.
        return (failed[1] if failed else tests[0]), used


def nearest_tests(file: str, texts: dict[str, str]) -> list[str]:
    """Order test files: mirrored ones, those that import the module or have its name, then by folder and mentions."""
    *folders, name = Path(file).with_suffix("").parts
    mirrored = Path("tests/unit", *(_MIRRORS.get(folder, folder) for folder in folders)).as_posix()
    module = ".".join([*folders[folders[0] in ("service", "monitor") :], name])

    def order(test: str) -> tuple[bool, bool, int, int]:
        text, is_named = texts[test], name in Path(test).stem
        is_direct = module in text or (is_named and f" {module.partition('.')[0]}." in text)
        common = os.path.commonpath([mirrored, test]).count("/")
        is_mirrored = is_named and test.startswith(f"{mirrored}/test_")
        return not is_mirrored, not is_direct, -common, -text.count(name.partition("_")[0])

    return sorted(texts, key=order)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--faults", type=int, default=40)
    parser.add_argument("--only", type=int, help="the number of one fault of the sample")
    parser.add_argument("--seconds", type=float, default=240, help="limit of processor time for each fault")
    parser.add_argument("--processes", type=int, choices=(1, 2), default=2)
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clones: queue.SimpleQueue[Clone] = queue.SimpleQueue()
        for number in range(options.processes):
            clones.put(Clone(Path(folder) / str(number)))
        root = Path(folder) / "0"
        sampled = enumerate(sample(root, seed=options.seed, count=options.faults), 1)
        faults = {number: fault for number, fault in sampled if options.only in (None, number)}
        paths = sorted(root.glob("tests/unit/**/test_*.py"))
        texts = {path.relative_to(root).as_posix(): path.read_text() for path in paths}

        def judge(number: int) -> dict[str, Any]:
            fault, clone, start = faults[number], clones.get(), time.monotonic()
            tests = nearest_tests(fault.file, texts)
            test, files = clone.judge(fault, tests, options.seconds)
            result = test or f"{files} of {len(tests)} test files run\n{_diff(clone.folder, fault)}"
            clones.put(clone)
            place = f"{number:3} {fault.file}:{fault.line} {fault.operator}"
            _say(f"{'caught  ' if test else 'SURVIVED'} {place} ({time.monotonic() - start:.0f} s): {result}")
            return {"number": number, "test": test, "files": files, **vars(fault)}

        _say(f"{len(faults)} faults of seed {options.seed}, {options.seconds:g} s of processor time for each")
        with ThreadPoolExecutor(options.processes) as pool:
            outcomes = list(pool.map(judge, faults))
    caught = sum(outcome["test"] is not None for outcome in outcomes)
    _say(f"{caught} of {len(outcomes)} faults caught ({caught / len(outcomes):.0%})")
    if options.json:
        _say(json.dumps({"caught": caught, "outcomes": outcomes}))
    return 0


def _diff(folder: Path, fault: Fault) -> str:
    source = (folder / fault.file).read_text()
    before, after = (text.splitlines(keepends=True) for text in (source, fault.apply(source)))
    return "".join(difflib.unified_diff(before, after, n=2))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
