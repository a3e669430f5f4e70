"""Changes of the prevalence within a window: error of the present prevalence, and time of the change.

    python -m benchmarks.changes [--json] [--quick] [--rounds N] [--figures FOLDER]

Everything is drawn with replacement from one set of labelled logits per task, calibration sets included, so that a
class looks exactly alike in both and the prevalence of every sample is known. Half of the windows meet a head that
assumes the prevalence at their beginning, the other half one that assumes that of the calibration set.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.change_methods import POLICY, Answer, Located, Place, answers, followed
from benchmarks.change_peers import DETECTORS, KERNELS, Segmentation, alarms, class_shares
from benchmarks.change_tables import (
    show,
    show_delays,
    show_targets,
    summary,
    summary_of_delays,
    swap_target,
    targets,
)
from benchmarks.datasets import Task, shared_folder, shared_task, synthetic_task, with_labels
from benchmarks.machine import describe
from benchmarks.streams import (
    CHANGED,
    SIZES,
    UNCHANGED,
    WINDOW,
    Stream,
    labels_of,
    pair_at,
    steady,
)
from lifelong_core.deploy import PostProcessingHead, PrevalenceEstimate, adapt

SEED = 0
SHARED_TASKS = ("lapgyn4_surgical_actions", "cifar10_resnet50", "hyperkvasir_therapeutic_interventions")
NEAR = 200
"""samples by which the time of a change may be off"""
FOUND = 500
"""samples by which a change may be off to count as one of two that were found"""
TOLERANCE = 0.001
"""A head that assumes the prevalence up to this in each class needs no swap."""
HARMFUL = 0.005
"""A swap that loses more accuracy than this is harmful."""
TUNING = 300
"""unchanged windows on which the penalty of ruptures is tuned"""

Row = dict[str, Any]


def judged(place: Place, stream: Stream, head: PostProcessingHead, answer: Answer) -> Row:
    """How good an answer is."""
    estimate, found = answer.estimate, answer.changes
    row: Row = {
        "task": place.task,
        "stream": stream.name,
        "method": answer.method,
        "milliseconds": 1000 * answer.seconds,
    }
    if isinstance(estimate, PrevalenceEstimate):
        row["covered"] = float(((estimate.low <= stream.now) & (stream.now <= estimate.high)).mean())
        estimate = estimate.prevalence
    row["error"] = float(np.abs(estimate - stream.now).sum())
    if found is not None:
        row["found"] = len(found)
        if found:
            row["covered_after_split"] = row["covered"]
        row["all_found"] = all(
            any(abs(one.samples_ago - ago) <= FOUND for one in found) for ago in stream.changes
        )
    if found is not None and stream.changes:
        last, true = found[-1] if found else Located(float("nan")), stream.changes[-1]
        row["near"] = abs(last.samples_ago - true) <= NEAR
        row["time_covered"] = last.low <= true <= last.high
    if found is not None and not stream.drifts:
        row["extra"] = (
            sum(all(abs(one.samples_ago - ago) > FOUND for ago in stream.changes) for one in found) > 0
        )
    if answer.fluctuates is not None:
        row["fluctuates"] = answer.fluctuates
    if answer.head is not None:
        row["swap"] = answer.head is not head
        if stream.is_steady and np.allclose(head.assumed_prevalence, stream.now, atol=TOLERANCE):
            row["needless_swap"] = row["swap"]
        row["error_ahead"] = float(np.abs(estimate - stream.ahead).sum())
        won = place.accuracy(answer.head, stream.ahead) - place.accuracy(head, stream.ahead)
        row["harmful"] = won < -HARMFUL
        row["gain"] = won
    return row


def measure(task: Task, number: int, *, calm: int, searched: int, windows: int) -> list[Row]:
    """A round with one calibration set.

    Args:
        task: to draw from.
        number: of the round.
        calm: windows of each kind without a change for every method.
        searched: more of them, in which ours looks for changes only.
        windows: of each kind with changes, for every method.
    """
    rng = np.random.default_rng([SEED, number, task.classes])
    place = Place.of(task, tuned(task, rng), rng)
    rows: list[Row] = []
    drawings = [draw for draw in UNCHANGED for _ in range(calm)] + [
        draw for draw in CHANGED for _ in range(windows)
    ]
    for position, drawing in enumerate(drawings):
        stream = drawing(task.classes, rng)
        window = stream.draw(place.population, rng)
        head = place.head(stream.before if (position + number) % 2 else None)
        rows += [judged(place, stream, head, one) for one in answers(place, stream, window, head)]
    for drawing in [draw for draw in UNCHANGED for _ in range(searched)]:
        stream = drawing(task.classes, rng)
        common = {"task": task.name, "stream": stream.name}
        for method, seen in followed(place, stream, stream.draw(place.population, rng)).items():
            found = {"found": len(seen.changes), "extra": bool(seen.changes)}
            rows.append({**common, "method": method, **found, "fluctuates": seen.pattern is not None})
    return rows


def tuned(task: Task, rng: np.random.Generator) -> dict[str, Segmentation]:
    """ruptures, with the penalty that suits the task."""
    unchanged = [class_shares(steady(task.classes, rng).draw(task.pool, rng).logits) for _ in range(TUNING)]
    return {name: Segmentation.tuned(kernel, unchanged) for name, kernel in KERNELS.items()}


LOOKS = {0.2: 250, 0.5: 100, 1.0: 50}
"""samples between two looks at a window that slides, for a change of this size"""
MOST_LOOKS = 16


def measure_delay(task: Task, number: int, *, streams: int) -> list[Row]:
    """How many samples after a change each method finds it; the head is right until then."""
    rng = np.random.default_rng([SEED + 1, number, task.classes])
    place = Place.of(task, {}, rng)
    rows: list[Row] = []
    for distance in SIZES:
        for _ in range(streams):
            before, after = pair_at(task.classes, distance, rng)
            mixes = np.repeat([before, after], [WINDOW, MOST_LOOKS * LOOKS[distance]], axis=0)
            logits = with_labels(place.population, labels_of(mixes, rng), rng).logits
            head = place.head(before)
            common = {"task": task.name, "size": distance}
            rows += [{**common, **row} for row in our_delays(place, head, logits, LOOKS[distance])]
            # One class is watched, in hindsight that which changes most: the detectors know of one figure only.
            watched = head.apply(logits).probabilities[:, np.abs(after - before).argmax()]
            for name in DETECTORS:
                found = np.array(alarms(name, watched))
                delay = min(found[found > WINDOW] - WINDOW, default=np.inf)
                rows.append(
                    {**common, "method": name, "delay": float(delay), "false": int((found <= WINDOW).sum())}
                )
    return rows


def our_delays(place: Place, head: PostProcessingHead, logits: np.ndarray, look: int) -> list[Row]:
    """Samples until a change point is found, until the sequential test rejects, and until the swap."""
    first: dict[str, int] = {}
    evidence, new = None, [logits[begin : begin + look] for begin in range(0, WINDOW, look)]
    for end in range(WINDOW, len(logits) + 1, look):
        window = logits[end - WINDOW : end]
        report = adapt(place.fitted, window, head, POLICY, new_buckets=new, evidence=evidence)
        evidence, new = report.evidence, [logits[end : end + look]]
        seen = {
            "ours, change point": bool(report.change_points),
            "ours, sequential test": report.shift_test is not None and report.shift_test.rejected,
            "ours, swap": report.outcome == "swap",
        }
        for name, found in seen.items():
            if found:
                first.setdefault(name, end - WINDOW)
        if len(first) == len(seen):
            break
    return [
        {"method": name, "delay": float(first.get(name) or np.inf), "false": int(first.get(name) == 0)}
        for name in seen
    ]


def tasks(*, quick: bool) -> list[Task]:
    """Simulated classifiers, and real ones where their logits are at hand."""
    if quick:
        return [synthetic_task(3, 5000)]
    simulated = [synthetic_task(2, 10_000, separation=1.5), synthetic_task(5, 10_000)]
    return simulated + ([shared_task(name) for name in SHARED_TASKS] if shared_folder().is_dir() else [])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--quick", action="store_true", help="one simulated task, few windows")
    parser.add_argument("--rounds", type=int, default=4, help="calibration sets of each task (4)")
    parser.add_argument("--figures", type=Path, help="write the plot into this folder")
    arguments = parser.parse_args()
    quick: bool = arguments.quick
    begin = time.perf_counter()
    machine = describe("numpy", "scipy", "ruptures", "river")
    chosen = tasks(quick=quick)
    print(f"machine: {json.dumps(machine)}\nseed {SEED}; tasks: {', '.join(task.name for task in chosen)}")
    amounts = (
        {"calm": 2, "searched": 10, "windows": 1} if quick else {"calm": 3, "searched": 30, "windows": 1}
    )
    rows: list[Row] = []
    waits: list[Row] = []
    for number in range(1 if quick else arguments.rounds):
        for task in chosen:
            rows += measure(task, number, **amounts)
            waits += measure_delay(task, number, streams=1)
            print(f"round {number}, {task.name}: {time.perf_counter() - begin:.0f} s", flush=True)
    found = summary(rows)
    show(found)
    delays = summary_of_delays(waits)
    show_delays(delays)
    reached = [*targets(found), swap_target(waits)]
    show_targets(reached)
    if arguments.figures is not None:
        from benchmarks import figures as drawing

        drawing.draw_changes(found, delays, arguments.figures)
    print(f"\n{time.perf_counter() - begin:.0f} s in all")
    if arguments.json:
        figures = {
            "benchmark": "changes",
            "machine": machine,
            "seed": SEED,
            "rounds": 1 if quick else arguments.rounds,
            "peers": ["whole window", "forgetting", "ruptures", "River"],
            "targets": reached,
            "streams": found,
            "ratios_to_whole_window": {
                stream: by_method["ours, rows"]["error"] / by_method["whole window"]["error"]
                for stream, by_method in found.items()
            },
            "delays": delays,
        }
        print(json.dumps(_as_json(figures)))


def _as_json(value: Any) -> Any:
    """The same without infinite numbers and nan, which JSON does not know: null."""
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


if __name__ == "__main__":
    main()
