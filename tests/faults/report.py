"""docs/reliability.md from the figures of a run: guarantees, method and results."""

from collections.abc import Iterable, Sequence
from typing import Any

from tests.faults.figures import Document
from tests.faults.load import RATE
from tests.faults.trial import DELIVERY_SECONDS

_TEXT = """\
# Reliability

Guarantees, on SQLite and on PostgreSQL:

- A prediction that was answered is in the log exactly once, with the values that were answered, even if any process is
  killed at any moment (`log_durability = "process"`), or the machine loses power (`"power"`).
- A request that is repeated with the same request id gets the same answer and is logged once. The one exception: the
  database is away, and another machine gave the first answer. Then the answer is new, and the log keeps the first.
- While the database is away, hangs or is locked, predictions are answered as before and wait in a spool on the local
  disk; workers that start meanwhile serve, too. All predictions are in the log within {delivery:g} s after the database
  is back.
- A disk without space is answered with 503 and Retry-After; nothing crashes, and no restart is needed afterwards.
- No answer mixes two heads, and a published head serves in every worker within a second.
- Of several monitors one runs each cycle; another takes over when it dies. Summaries hold every row once, whatever the
  clocks say. The audit log has no gap. A faulty monitor does not affect serving.

Method: faults are injected into a whole installation (two workers, a monitor, a real database) under 200
requests/s of `/v1/logits`, two rows each. The client retries reset and refused requests with the same request
id and keeps every answer. Afterwards the log is read in commit order and compared with the answers, row by row:
ids, logits, decisions, head versions; every answer with the head that it names; the monitor's summaries with a
recomputation; cycles and audit log. Positive controls show that each check detects its violation: loss,
duplicate, leak, mixed head, torn record, repeated cycle and gap (`tests/faults/test_controls.py`). CI runs the
same in a shortened form (`pytest tests/faults`).
"""


def render(outcomes: Sequence[Document]) -> str:
    """Return the complete document, with a table for each run of the outcomes."""
    broken = [one for one in outcomes if one["violations"]]
    parts = [
        _TEXT.format(delivery=DELIVERY_SECONDS, rate=RATE),
        "## Figures\n",
        "Latency is that of all requests, retries included; load generator and databases share the cores.\n",
    ]
    runs: dict[str, list[Document]] = {}
    for one in outcomes:
        runs.setdefault(_circumstances(one["run"]), []).append(one)
    for circumstances, some in runs.items():
        parts += [circumstances, _table(some)]
    parts += [_details(outcomes), "Every guarantee held.\n" if not broken else _broken(broken)]
    return "\n".join(parts)


def _circumstances(run: dict[str, Any]) -> str:
    machine = run["machine"]
    return (
        f"`{run['command']}`, {run['date']}, seed {run['seed']}; {machine['processor']},"
        f" {machine['cores']} cores, {machine['system']}, Python {machine['python']},"
        f" {', '.join(f'{name} {version}' for name, version in machine['versions'].items())}.\n"
    )


def _table(outcomes: Iterable[Document]) -> str:
    lines = [
        "| scenario | database | faults | answered | failed | lost | duplicated | s to deliver"
        " | p50 / p99 ms before | during |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in outcomes:
        latency = one["milliseconds"]
        cells = (
            one["scenario"],
            one["database"],
            f"{one['faults']:,}",
            f"{one['answered']:,}",
            f"{one['failed']:,}",
            f"{one['lost']:,}",
            f"{one['duplicated']:,}",
            _number(one["seconds_to_deliver"]),
            f"{_number(latency.get('p50_before'))} / {_number(latency.get('p99_before'))}",
            f"{_number(latency.get('p50_during'))} / {_number(latency.get('p99_during'))}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _details(outcomes: Iterable[Document]) -> str:
    lines = ["What else was counted:\n"]
    for one in outcomes:
        figures = ", ".join(f"{_words(name)} {_value(value)}" for name, value in one["figures"].items())
        lines.append(f"- {one['scenario']}, {one['database']}: {figures}")
    return "\n".join([*lines, ""])


def _broken(outcomes: Iterable[Document]) -> str:
    lines = ["**Broken promises:**\n"]
    for one in outcomes:
        first = one["violations"][0].splitlines()[0]
        lines.append(f"- {one['scenario']}, {one['database']}, {one['violations_in_all']} times: {first}")
    return "\n".join([*lines, ""])


def _words(name: str) -> str:
    return name.replace("_", " ")


def _value(value: Any) -> str:
    if isinstance(value, list):
        return " to ".join(_value(one) for one in value)
    return (
        f"{value:,.4g}"
        if isinstance(value, float)
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}" if value < 100 else f"{value:,.0f}"
