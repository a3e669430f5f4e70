"""Tables, targets and figures of the benchmark of changes."""

from typing import Any

import numpy as np

from benchmarks.change_peers import FORGETTING, KERNELS
from benchmarks.streams import AGES, SIZES, WINDOW, abrupt_name

Row = dict[str, Any]


def mean_of(rows: list[Row], key: str) -> float:
    """Mean over the rows that have this figure; nan: none has."""
    values = [row[key] for row in rows if key in row]
    return float(np.mean(values)) if values else float("nan")


def summary(rows: list[Row]) -> dict[str, dict[str, Row]]:
    """Means by stream and method; of the forgetting rates, the best for each stream, which only hindsight knows."""
    found: dict[str, dict[str, Row]] = {}
    for stream in dict.fromkeys(row["stream"] for row in rows):
        own = [row for row in rows if row["stream"] == stream]
        by_method: dict[str, Row] = {}
        for method in dict.fromkeys(row["method"] for row in own):
            mine = [row for row in own if row["method"] == method]
            by_method[method] = {
                "windows": sum("error" in row for row in mine),
                "changed": float(np.mean([row["found"] > 0 for row in mine if "found" in row] or [np.nan])),
                "searched": sum("found" in row for row in mine),
                "median_milliseconds": float(
                    np.median([row["milliseconds"] for row in mine if "milliseconds" in row])
                ),
                **{key: mean_of(mine, key) for key in FIGURES},
            }
        rates = [method for method in by_method if method.startswith(FORGETTING)]
        if rates:
            best = min(rates, key=lambda method: by_method[method]["error"])
            by_method[FORGETTING] = {**by_method[best], "rate": int(best.split()[-1])}
            for rate in rates:
                del by_method[rate]
        found[stream] = by_method
    return found


FIGURES = (
    "error",
    "error_ahead",
    "covered",
    "covered_after_split",
    "found",
    "extra",
    "fluctuates",
    "all_found",
    "near",
    "time_covered",
    "swap",
    "needless_swap",
    "harmful",
    "gain",
)
"""of a row, to average"""
WHOLE = "whole window"
OURS = ("ours, rows", "ours, summaries")
METHODS = (WHOLE, FORGETTING, *KERNELS, *OURS, "change known")


def show(found: dict[str, dict[str, Row]]) -> None:
    """Print the figures of all windows."""
    print("\nmean L1 error to the prevalence that holds at the end of the window (forgetting: best rate)")
    print(f"{'':26s}" + "".join(f"{name:>17s}" for name in METHODS))
    for stream, by_method in found.items():
        print(f"{stream:26s}" + "".join(_cell(by_method, name) for name in METHODS))
    print(
        "\nshare of the windows in which a change is found; of the rows: in which one is found where none is, in which"
    )
    print(
        "the last is within 200 samples, whose interval of its time covers; coverage of 95 % intervals; median ms"
    )
    finders = (*OURS, *KERNELS)
    estimators = (WHOLE, *OURS)
    print(
        f"{'':26s}"
        + "".join(f"{name:>17s}" for name in finders)
        + "  extra fluct.  near covers   whole   rows  summ.   ms"
    )
    for stream, by_method in found.items():
        rows = by_method[OURS[0]]
        print(
            f"{stream:26s}"
            + "".join(f"{by_method[name]['changed']:17.3f}" for name in finders)
            + f"{rows['extra']:7.2f}{rows['fluctuates']:7.2f}{rows['near']:6.2f}{rows['time_covered']:7.2f} "
            + "".join(f"{by_method[name]['covered']:7.3f}" for name in estimators)
            + f"{rows['median_milliseconds']:5.0f}"
        )
    print(
        "\nours from rows / whole window: swaps; harmful ones; accuracy won, in points; L1 error, all to the mean"
    )
    print("prevalence from now on, which is that of the window where its mixes come again")
    for stream, by_method in found.items():
        ours, whole = by_method[OURS[0]], by_method[WHOLE]
        print(
            f"{stream:26s}{ours['swap']:6.2f} /{whole['swap']:5.2f}{ours['harmful']:8.3f} /{whole['harmful']:6.3f}"
            f"{100 * ours['gain']:7.1f} /{100 * whole['gain']:5.1f}"
            f"{ours['error_ahead']:8.3f} /{whole['error_ahead']:6.3f}"
        )


def _cell(by_method: dict[str, Row], name: str) -> str:
    row = by_method.get(name)
    if row is None:
        return " " * 17
    rate = f" ({row['rate']})" if "rate" in row else ""
    return f"{row['error']:.3f}{rate}".rjust(17)


def targets(found: dict[str, dict[str, Row]]) -> list[Row]:
    """What is aimed at, and what was measured with rows."""

    def ours(stream: str, key: str) -> float:
        return found[stream][OURS[0]][key]

    def over(streams: list[str], key: str) -> float:
        return float(np.nanmean([ours(stream, key) for stream in streams]))

    calm = found["no change"]
    changed = [stream for stream in found if stream.startswith("abrupt")]
    medium = [abrupt_name(0.5, age) for age in AGES]
    rows: list[tuple[str, str, float, float]] = [
        *(
            (
                f"L1 error, changed {age:,} samples ago",
                "<=",
                goal,
                over([abrupt_name(d, age) for d in SIZES], "error"),
            )
            for age, goal in ((1000, 0.12), (500, 0.15))
        ),
        (
            "L1 error without a change / whole window's",
            "<=",
            1.05,
            calm[OURS[0]]["error"] / calm[WHOLE]["error"],
        ),
        ("both of two changes found (each > 0.3)", ">=", 1.0, ours("two changes", "all_found")),
        ("coverage of 95 % intervals, no change", ">=", 0.93, ours("no change", "covered")),
        (
            "coverage of 95 % intervals where a change is found",
            ">=",
            0.93,
            over(changed, "covered_after_split"),
        ),
        ("time of a change of L1 0.5 within 200", ">=", 0.9, over(medium, "near")),
        ("interval of that time covers", ">=", 0.93, over(medium, "time_covered")),
        ("windows without a change with a change point", "<=", 0.01, ours("no change", "changed")),
        ("the same, from summaries", "<=", 0.01, calm[OURS[1]]["changed"]),
        ("the same, samples in groups", "<=", 0.01, ours("groups, no change", "changed")),
        ("harmful swaps, all streams", "<=", 0.005, over(list(found), "harmful")),
        (
            "swaps without a shift (target: whole window's)",
            "<=",
            calm[WHOLE]["needless_swap"],
            calm[OURS[0]]["needless_swap"],
        ),
    ]
    return [
        {"target": name, "relation": relation, "goal": goal, "measured": measured}
        for name, relation, goal, measured in rows
    ]


def show_targets(rows: list[Row]) -> None:
    """Print targets beside figures."""
    print()
    for row in rows:
        most = row["relation"] == "<="
        met = row["measured"] <= row["goal"] if most else row["measured"] >= row["goal"]
        print(
            f"{row['target']:46s}{row['measured']:8.3f}   target {row['relation']} {row['goal']:g}"
            f"{'' if met else '   missed'}"
        )


def summary_of_delays(rows: list[Row]) -> list[Row]:
    """Median delay by size of the change and method."""
    found: list[Row] = []
    for size in SIZES:
        for method in dict.fromkeys(row["method"] for row in rows):
            own = [row for row in rows if (row["size"], row["method"]) == (size, method)]
            found.append(
                {
                    "size": size,
                    "method": method,
                    "samples": float(np.median([row["delay"] for row in own])),
                    "found": float(np.mean([np.isfinite(row["delay"]) for row in own])),
                    "false_alarms": mean_of(own, "false"),
                }
            )
    return found


def swap_target(rows: list[Row]) -> Row:
    """Samples from the change to the swap, over those that the sequential test needs; of streams with a swap."""
    tested, swapped = (
        np.array([row["delay"] for row in rows if row["method"] == f"ours, {name}"])
        for name in ("sequential test", "swap")
    )
    both = np.isfinite(tested) & np.isfinite(swapped)
    ratio = float(np.median(swapped[both] / tested[both])) if both.any() else float("nan")
    return {
        "target": "samples to the swap / to the sequential test",
        "relation": "<=",
        "goal": 1.5,
        "measured": ratio,
    }


def show_delays(rows: list[Row]) -> None:
    """Print how soon a change is found."""
    print(
        "\nsamples after a change until it is found (median; inf: not within MOST_LOOKS looks), how often, and"
    )
    print(f"false alarms in the {WINDOW:,} samples before")
    for row in rows:
        figures = f"{row['samples']:8,.0f}{row['found']:8.2f}{row['false_alarms']:8.2f}"
        print(f"L1 {row['size']:.1f}  {row['method']:24s}{figures}")
