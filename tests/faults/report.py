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
- A request that is repeated with the same request id gets the same answer and is logged once. One exception: the
  database is away, and this machine does not hold the first answer: another machine gave it, or it is beyond the age or
  size that is kept (`LIFELONG_RECENT_REQUESTS_HOURS`, `LIFELONG_MAXIMUM_RECENT_REQUESTS_BYTES`), or `/readyz` says that
  the file cannot be used. Then the answer is new, and the log keeps the first.
- While the database is away, hangs or is locked, predictions are answered as before and wait in a spool on the local
  disk; workers that start meanwhile serve, too. All predictions are in the log within {delivery:g} s after the database
  is back.
- A disk without space is answered with 503 and Retry-After; every route and probe answers, nothing crashes, a worker
  that is killed meanwhile is replaced, and no restart is needed afterwards.
- After its parent is killed, the service can be started again at once: the old workers release the port within 4 s.
- No answer mixes two heads, and a published head serves in every worker within a second.
- In half an hour under constant load, with swaps, outages and clients that disconnect in mid-request, neither parent
  nor worker of the service grows by 5 % or keeps descriptors or threads (PostgreSQL).
- Of several monitors one runs each cycle; another takes over when it dies. Summaries hold every row once, whatever the
  clocks say. The audit log has no gap. A faulty monitor does not affect serving.
- `lifelong upgrade` that is killed (at statements, before and after its commit) changes nothing or everything; service
  and monitor name the command until the next one completes (`tests/integration/test_upgrade.py`).
- A labelling plan whose monitor is killed is made once, and completed while the import and workers are killed: the
  import is repeated, and each label is stored once, with the propensity of the plan
  (`tests/integration/test_labelling.py`).
- A training that is killed three times (before and after it stores a checkpoint, and in mid-epoch) gives the same model
  as one that is not, on a CPU: equal weights, losses, logits and graph (`tests/unit/develop/training/test_run.py`).
  Each checkpoint gives it three attempts anew; without a new one, the third kill ends the job.

Method: faults are injected into a whole installation (two workers, a monitor, a real database) under 200
requests/s of `/v1/logits`, two rows each. The client retries reset and refused requests with the same request
id and keeps every answer. Afterwards the log is read in commit order and compared with the answers, row by row:
ids, logits, decisions, head versions; every answer with the head that it names; the monitor's summaries with a
recomputation; cycles and audit log. Positive controls show that each check detects its violation: loss,
duplicate, leak, mixed head, torn record, repeated cycle and gap (`tests/faults/test_controls.py`). CI runs the
same in a shortened form (`pytest tests/faults`).
"""

PROCESSES = "processes"
"""Name of the figures of single processes, which have a table."""
LEFT = "left_"
"""Prefix of the names of the numbers of disconnections."""
_SOAK = """\
## Soak of serving

A quarter of the requests are images for `/v1/predict`, the others logits. Of the images one in 50 is a TIFF, which the
decoding process decodes; of the JPEGs a third are prepared in threads beside the batch. A fifth of the clients
disconnect in mid-request, by a regular end or by a reset, and send the request again with the same id: while they send
the body, while they wait for the answer, or while they read a long answer slowly. The capacity is what load generator
and service reach together with the same requests, and 70 % of it are offered. Every round of the load is compared with
the log like the trials above, and images also by their logits. Memory is the unique one (USS) that a process keeps: the
tenth percentile of each quarter of the time after the warm-up; growth is from the first to the last. Descriptors and
threads are counted after the warm-up and at the end, while no client is connected. Of the latencies in the table above,
each is the largest of all rounds; a refused client waits for a second before it tries again, and its request counts as
one.
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
    soaks = [one for one in outcomes if PROCESSES in one["figures"]]
    if soaks:
        parts += [_SOAK, *(_soak(one) for one in soaks)]
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


def _soak(outcome: Document) -> str:
    figures, run = outcome["figures"], outcome["run"]
    left = [
        f"{figures[name]:,} {_words(name.removeprefix(LEFT))}" for name in figures if name.startswith(LEFT)
    ]
    counts = [
        f"{outcome['answered']:,} requests answered",
        f"{figures['rows']:,} rows",
        f"{figures['head_swaps']:,} swaps",
        f"{outcome['faults']:,} restarts of the database",
        f"disconnections: {', '.join(left)}",
    ]
    violations = f"{outcome['violations_in_all']:,} violations"
    lines = [
        f"`{run['command']}`, {run['date']}, {outcome['database']}: {_value(figures['offered'])} of"
        f" {_value(figures['capacity'])} requests/s for {figures['load_seconds'] / 60:.0f} minutes;"
        f" {'; '.join(counts)}; {outcome['lost']:,} lost, {outcome['duplicated']:,} duplicated, {violations}.\n",
        "| process | USS of each quarter, MB | growth | RSS, MB | descriptors | threads |",
        "|---|---|---|---|---|---|",
    ]
    for one in figures[PROCESSES]:
        cells = (
            one["name"],
            " / ".join(f"{megabytes:.1f}" for megabytes in one["unique_megabytes"]),
            f"{100 * one['growth']:+.1f} %",
            f"{one['resident_megabytes']:.1f}",
            _value(one["descriptors"]),
            _value(one["threads"]),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _details(outcomes: Iterable[Document]) -> str:
    lines = ["## Further figures\n"]
    for one in outcomes:
        figures = ", ".join(
            f"{_words(name)} {_value(value)}" for name, value in one["figures"].items() if name != PROCESSES
        )
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
