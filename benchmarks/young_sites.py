"""One-sided predictions with a token that is not the site's, at sites of several ages; and how long honest sites wait.

    python -m benchmarks.young_sites [--json]

Real logits (LIFELONG_SHARED_DATA), costs 0 and 1, a real store and its cycles with the default settings. A site
sends 20 predictions an hour. Attackers send 500 predictions of one class. `cost` is the largest expected cost of the
head in force, for the site's own mix, from the attack until four days later; an honest site whose mix differs from the
assumed one waits `hours` for its swap.
"""

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import numpy as np

from benchmarks.datasets import Task, shared_task, with_labels
from benchmarks.machine import describe
from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import PostProcessingHead
from lifelong_core.store import (
    LogEntry,
    Model,
    Prediction,
    Scope,
    Store,
    new_prediction_id,
    register_calibration,
)
from lifelong_core.store.log.identifiers import first_id_at
from lifelong_monitor.cycle.cycle import run_cycle
from lifelong_monitor.cycle.subject import FittedQuantifiers

TASK = "hyperkvasir_therapeutic_interventions"
SEED = 0
RATE = 20
"""predictions of a site in an hour"""
ATTACK = 500
AFTER = 96
"""hours that a site is followed after an attack or a change of its mix"""
EVERY = 4
"""hours between two cycles, except in the first twelve hours after an attack or a change"""
HOUR = timedelta(hours=1)
BEGINS_AT = 15
"""hour of the day (UTC) at which the sites begin"""


@dataclass(frozen=True)
class Source:
    """What one token sends: `rate` predictions in each of the hours from `first` up to `last`."""

    token: str
    rate: int
    mix: np.ndarray
    first: int = 0
    last: int = 10_000


@dataclass(frozen=True)
class Course:
    """What became of a site."""

    name: str
    hours: int | None
    """from the attack, or the change of the mix, to the first swap; None: none within AFTER"""
    proposed_hours: int | None
    """the same for the first proposal"""
    cost_before: float
    cost: float
    """largest expected cost of the head in force for the site's mix"""
    cost_at_end: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    options = parser.parse_args()
    courses: list[Course] = []
    with tempfile.TemporaryDirectory() as name:
        settings = Settings(data_directory=Path(name))
        Store.migrate(settings.resolved_database_url)
        with Store.from_settings(settings) as store:
            sites = Sites(store, settings, shared_task(TASK))
            for title, at, sources, mix in scenarios(sites.assumed):
                courses.append(sites.follow(title, at, sources, mix))
                if not options.json:
                    print(courses[-1], flush=True)
    if options.json:
        print(
            json.dumps(
                {"benchmark": "young_sites", **describe("numpy"), "courses": [asdict(c) for c in courses]}
            )
        )


def scenarios(assumed: np.ndarray) -> list[tuple[str, int, list[Source], np.ndarray]]:
    """Name, hour of the attack or of the change, sources, and the site's mix from then on."""
    one_sided = np.eye(assumed.size)[int(assumed.argmin())]
    shifted = 0.1 * assumed + 0.9 * one_sided
    found: list[tuple[str, int, list[Source], np.ndarray]] = []
    for age in (0, 3, 13, 168):
        site = [Source("site", RATE, assumed, last=max(age, 1) + AFTER)]
        site = site if age else [Source("site", RATE, assumed, first=6)]
        for kind, sources in {
            "in an hour": [Source("other", ATTACK, one_sided, age, age + 1)],
            "by two tokens": [Source(f"other-{i}", ATTACK // 2, one_sided, age, age + 1) for i in (1, 2)],
            "in 12 hours": [Source("other", ATTACK // 12, one_sided, age, age + 12)],
        }.items():
            found.append((f"attack {kind}, site of {age} h", age, [*site, *sources], assumed))
    for kind, names in {
        "a bound token": ["bound"],
        "a token that is not bound": ["site"],
        "three tokens that are not bound": ["site-1", "site-2", "site-3"],
    }.items():
        sources = [Source(one, RATE // len(names), shifted) for one in names]
        found.append((f"honest new site, {kind}", 0, sources, shifted))
    days = [Source("site", 60, shifted, 24 * day - 7, 24 * day + 1) for day in range(1, 5)]
    found.append(("honest new site, eight hours a day", 0, days, shifted))
    outbreak = [Source("site", RATE, assumed, last=168), Source("site", 2 * RATE, shifted, first=168)]
    found.append(("honest outbreak, site of 168 h", 168, outbreak, shifted))
    return found


class Sites:
    """Environments of one model, with hourly cycles."""

    def __init__(self, store: Store, settings: Settings, task: Task) -> None:
        self._store, self._settings, self._data = store, settings, task.deployment
        costs = 1.0 - np.eye(task.classes)
        store.tasks.add("task", [f"c{i}" for i in range(task.classes)], costs.tolist(), actor="benchmark")
        added = store.models.add("task", "model", kind="external", actor="benchmark")
        register_calibration(store, added.reference, task.calibration, actor="benchmark")
        self._model: Model = store.models.get(added.reference)
        self._quantifiers = FittedQuantifiers()
        self.assumed = self._head("none").assumed_prevalence

    def follow(self, name: str, at: int, sources: Sequence[Source], mix: np.ndarray) -> Course:
        """Send and judge hour by hour."""
        rng = np.random.default_rng(SEED)
        place = f"site-{len(self._store.environments.list())}"
        self._store.environments.ensure(place, limit=1000)
        tokens = {one: self._token(place, one) for one in {source.token for source in sources}}
        today = datetime.now(UTC).replace(hour=BEGINS_AT, minute=0, second=0, microsecond=0)
        start = today - timedelta(days=1) - (at + AFTER) * HOUR
        before = worst = last = self._cost(place, mix)
        swapped: int | None = None
        proposed: int | None = None
        for hour in range(at + AFTER):
            for source in sources:
                if source.first <= hour < source.last:
                    self._send(place, start + hour * HOUR, source, tokens, rng)
            if hour % EVERY and not at <= hour < at + 12:
                continue
            due_at = start + (hour + 1) * HOUR
            result = run_cycle(
                self._store, self._settings, self._model, place, due_at, quantifiers=self._quantifiers
            )
            effect = None if result.report is None or result.last is None else result.last.effect
            if hour < at:
                continue
            if effect == "swap" and swapped is None:
                swapped = hour + 1 - at
            if effect == "proposes a swap" and proposed is None:
                proposed = hour + 1 - at
            last = self._cost(place, mix)
            worst = max(worst, last)
            if name.startswith("honest") and swapped is not None:
                break
        return Course(name, swapped, proposed, round(before, 3), round(worst, 3), round(last, 3))

    def _head(self, place: str) -> PostProcessingHead:
        return self._store.registry().head_for(self._model, place).head

    def _cost(self, place: str, mix: np.ndarray) -> float:
        decisions = self._head(place).apply(self._data.logits).decisions
        wrong = np.bincount(self._data.labels, decisions != self._data.labels, self._data.classes)
        return float(mix @ (wrong / self._data.counts))

    def _token(self, place: str, name: str) -> int:
        bound = [place] if name == "bound" else None
        created, _ = self._store.tokens.create(
            f"{place}-{name}", [Scope.PREDICT], actor="benchmark", environments=bound
        )
        return created.id

    def _send(
        self,
        place: str,
        begin: datetime,
        source: Source,
        tokens: Mapping[str, int],
        rng: np.random.Generator,
    ) -> None:
        labels = rng.choice(self._data.classes, source.rate, p=source.mix)
        rows = with_labels(self._data, labels, rng).logits
        moments = np.sort(rng.uniform(0, 3600, source.rate))
        entries: list[LogEntry] = []
        for row, seconds in zip(rows, moments, strict=True):
            identifier = first_id_at(begin + timedelta(seconds=float(seconds))).int
            one = UUID(int=identifier + new_prediction_id().int % 2**62)
            prediction = Prediction(one, self._model.id, place, 1, 0, row.astype(np.float32))
            entries.append(LogEntry((prediction,), token_id=tokens[source.token]))
        self._store.predictions.append(entries)


if __name__ == "__main__":
    main()
