"""One fault under load, and the checks afterwards; all scenarios use it."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import numpy as np

from lifelong_core.store import Cycle, LogPosition, Prediction, RequestKey, StoredRequest, logged_at
from lifelong_monitor.cycle.subject import FittedQuantifiers
from tests import tools
from tests.faults import checks
from tests.faults.load import RATE, Answer, Load
from tests.faults.world import MODEL, QUANTIFIER, World, patiently

DELIVERY_SECONDS = 30.0
"""Time in seconds from the return of the database to an empty spool: a guarantee of the product."""
_PATIENCE_SECONDS = 120.0
"""Time limit for what has no deadline, long enough for a busy machine; a lease that is not taken over exceeds it."""
QUICK_RATE = 30.0
"""Requests per second in CI, where two installations share two cores."""


def delivery_patience() -> float:
    """Seconds to wait for an empty spool: the deadline, or longer where deadlines are not asserted."""
    return DELIVERY_SECONDS if tools.has_deadlines() else _PATIENCE_SECONDS


@dataclass(frozen=True)
class Scale:
    """Full or shortened form (CI) of the suite."""

    is_quick: bool
    seed: int = 0

    def of(self, full: float, quick: float) -> float:
        """Return a duration or a rate of this form."""
        return quick if self.is_quick else full

    def count(self, full: int, quick: int) -> int:
        """Return a number of repetitions of this form."""
        return quick if self.is_quick else full


@dataclass
class Outcome:
    """Result of one scenario on one database."""

    scenario: str
    database: str
    faults: int
    """number of injected faults"""
    answered: int
    failed: int
    lost: int
    duplicated: int
    seconds_to_deliver: float | None
    """longest time from the return of the database to an empty spool; None: there was no outage"""
    milliseconds: dict[str, float | None]
    """latency of the requests: p50 and p99, before and during the faults"""
    violations: list[str]
    figures: dict[str, Any] = field(default_factory=dict[str, Any])
    """further figures of this scenario"""
    seconds: float = 0.0
    """duration of the scenario"""


Scenario: TypeAlias = Callable[[World, Scale], Outcome]


class Trial:
    """The load of one scenario in a separate environment, and the times of its faults."""

    def __init__(
        self, world: World, name: str, load: Load, position: LogPosition | None, scale: Scale
    ) -> None:
        self.world = world
        self._scale = scale
        self.name = name
        self.environment = name.replace("_", "-")
        self.load = load
        self.faults = 0
        self.violations: list[str] = []
        self.figures: dict[str, Any] = {}
        self._position = position
        self._began = time.monotonic()
        self._during: list[tuple[float, float]] = []
        self._deliveries: list[float] = []

    @contextmanager
    def fault(self) -> Iterator[None]:
        """Record the block as the time of one fault, from its start to the recovery."""
        began = time.monotonic()
        self.faults += 1
        yield
        self._during.append((began, time.monotonic()))

    def database_is_back(self) -> None:
        """Wait until the spool is delivered; a time above the limit is a violation."""
        self._deliveries.append(self._delivered())

    def _delivered(self) -> float:
        patience = delivery_patience()
        seconds = patiently(lambda: self.world.spool().predictions == 0, patience)
        if seconds is None:
            self.violations.append(f"the spool is not empty after {patience:g} s")
        return patience if seconds is None else seconds

    def wait_for_cycles(self, count: int) -> None:
        """Wait until this many more cycles have run; fewer within the time limit are a violation."""
        before = len(self.cycles())
        if patiently(lambda: len(self.cycles()) >= before + count, _PATIENCE_SECONDS) is None:
            ran = len(self.cycles()) - before
            self.violations.append(f"{ran} cycles instead of {count} within {_PATIENCE_SECONDS:g} s")

    def cycles(self) -> list[Cycle]:
        """All cycles of the served model in this environment."""
        return self.world.store.cycles.list(self.world.model.id, self.environment, limit=100_000)

    def milliseconds(self) -> dict[str, float | None]:
        """Latencies of the requests that were due before the first fault, and during a fault."""
        first = min((began for began, _ in self._during), default=float("inf"))
        before = [a.seconds for a in self.load.answers if a.due_at < first]
        during = [a.seconds for a in self.load.answers if any(b <= a.due_at <= e for b, e in self._during)]
        return {
            f"p{share}_{name}": quantile(values, share / 100)
            for name, values in (("before", before), ("during", during))
            for share in (50, 99)
        }

    def conclude(
        self,
        *,
        is_hidden: bool = False,
        erased: Mapping[bytes, datetime] = checks.NOTHING,
        in_order: bool = True,
    ) -> Outcome:
        """End the load, wait for the deliveries, and compare the log with the answers.

        Args:
            is_hidden: whether clients must not notice the fault: no request may need a repetition.
            erased: times of the erasures of groups, by their hashes; their earlier predictions must be absent.
            in_order: whether the clocks were right, so that later cycles read more of the log.
        """
        self.load.stop()
        world = self.world
        world.ready(workers=1)
        self._delivered()
        # All rows since the start: those of earlier trials were delivered before.
        rows = world.read_log(self._position)
        answers = self.load.answers
        kept = [answer for answer in answers if not self._is_erased(answer, erased)]
        lost, duplicated = checks.lost(kept, rows), checks.duplicated(rows)
        failed = checks.failed(self.load.failures)
        self.violations += [
            *failed,
            *lost,
            *duplicated,
            *checks.unasked(answers, rows),
            *checks.answered_twice(answers),
            *checks.altered(kept, rows, world.group_hashes({one.group for one in kept if one.group})),
            *checks.mixed(checks.with_logged_logits(answers, rows), self._heads()),
            *checks.wrong_requests(*self._requests(kept)),
            *(checks.interrupted(answers) if is_hidden else []),
            *checks.leaked(rows, self.environment, erased),
            *checks.spool_left(world.spool().predictions),
            *self._monitored(in_order=in_order),
        ]
        if self.load.refusals_without_retry_after:
            self.violations.append(f"{self.load.refusals_without_retry_after} refusals had no Retry-After")
        if not answers:
            self.violations.append("not a single request was answered")
        if not self.faults:
            self.violations.append("no fault was injected")
        outcome = Outcome(
            scenario=self.name,
            database=world.kind,
            faults=self.faults,
            answered=len(answers),
            failed=len(self.load.failures),
            lost=len(lost),
            duplicated=len(duplicated),
            seconds_to_deliver=max(self._deliveries, default=None),
            milliseconds=self.milliseconds(),
            violations=self.violations,
            figures=self.figures
            | {
                "resets": sum(answer.resets for answer in answers),
                "refusals": sum(answer.refusals for answer in answers),
                "rows": len(rows),
            },
            seconds=time.monotonic() - self._began,
        )
        # The monitor needs one or two ticks for it; the next scenario may begin before.
        world.later(lambda: outcome.violations.extend(self._summaries(rows)))
        return outcome

    def _is_erased(self, answer: Answer, erased: Mapping[bytes, datetime]) -> bool:
        moment = erased.get(self.world.group_hash(answer.group)) if answer.group and erased else None
        return moment is not None and logged_at(answer.prediction_ids[0]) <= moment

    def _heads(self) -> dict[int, Any]:
        return {record.version: record.head for record in self.world.store.heads.list(MODEL)}

    def _requests(self, answers: Sequence[Answer]) -> tuple[list[Answer], dict[str, StoredRequest]]:
        """Repeated requests, and some others, with the predictions of their ids in the log."""
        chosen = [answer for answer in answers if answer.resets or answer.refusals]
        chosen += answers[:: max(1, len(answers) // self._scale.count(300, 50))]
        model_id = self.world.model.id
        found: dict[str, StoredRequest] = {}
        for answer in chosen:
            key = RequestKey(model_id, self.environment, answer.request_id)
            stored = self.world.store.predictions.request(key)
            if stored is not None:
                found[answer.request_id] = stored
        return chosen, found

    def _monitored(self, *, in_order: bool) -> list[str]:
        """Violations in the monitor's cycles and in the audit log."""
        store, model = self.world.store, self.world.model
        cycles = self.cycles()
        audit = store.audit.list(limit=1_000_000)
        subject = f"{model.reference}/{self.environment}"
        about = [entry for entry in audit if entry.subject == subject]
        self.figures |= {"cycles": len(cycles), "swaps": sum(c.outcome == "swap" for c in cycles)}
        return [
            *checks.repeated_cycles(cycles, about, in_order=in_order),
            *checks.audit_gaps(audit),
        ]

    def _summaries(self, rows: Sequence[Prediction]) -> list[str]:
        """Wait until the monitor has read every row, and compare its summaries with a recomputation from the rows."""
        if not rows:
            return []
        world, model = self.world, self.world.model
        if model.calibration_set_id is None:
            return ["the model has no calibration set"]
        fitted = FittedQuantifiers().get(world.store, model, model.calibration_set_id, QUANTIFIER)
        moments = [logged_at(row.id) for row in rows]
        hour = timedelta(hours=1)

        def summarised() -> int:
            buckets = world.store.summaries.window(
                model.id, self.environment, fitted.digest, min(moments) - hour, max(moments) + hour
            )
            return sum(bucket.samples + bucket.quarantined for bucket in buckets)

        if patiently(lambda: summarised() == len(rows), _PATIENCE_SECONDS) is None:
            return [
                f"the summaries hold {summarised()} rows of {len(rows)} after {_PATIENCE_SECONDS:g} s without a fault"
            ]
        return world.store.summaries.check(model, self.environment, fitted)


@contextmanager
def under_load(
    world: World,
    name: str,
    scale: Scale,
    *,
    is_paced: bool = True,
    rate: float | None = None,
    threads: int | None = None,
    workers: int = 2,
    kind: type[Load] = Load,
) -> Iterator[Trial]:
    """Run a trial with load during the block or until `conclude`.

    Args:
        world: the installation.
        name: name of the trial, from which that of its environment follows.
        scale: full or shortened form.
        is_paced: False: each thread sends its next request after the answer.
        rate: requests per second; None: that of the form.
        threads: largest number of simultaneous requests; None: that of the form.
        workers: number of workers that answer at the start.
        kind: kind of the load.
    """
    world.ready(workers=workers)
    position = world.end_of_log()
    load = kind(
        world.port,
        world.installation.token,
        name.replace("_", "-"),
        rate=(rate or scale.of(RATE, QUICK_RATE)) if is_paced else None,
        threads=threads or scale.count(40, 10),
        seed=scale.seed,
    )
    with load:
        yield Trial(world, name, load, position, scale)


def quantile(values: Sequence[float], share: float) -> float | None:
    """Return a quantile of seconds, in milliseconds; None without values."""
    return float(np.quantile(values, share)) * 1000 if values else None
