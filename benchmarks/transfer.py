"""Which strategy finds the source tasks that help? Every strategy on measured transfers that the ranker has not seen.

    python -m benchmarks.transfer --train FOLDER --evaluate FOLDER [--json] [--quick] [--plot FILE]

Both folders hold `transfer_*.npz` and `tasks_*.csv` (layout of the published outcomes, see
`lifelong_core.develop.knowledge.transfer_folder`). Targets are the tasks of --evaluate whose split is "validation", or
all when there are none; sources are all tasks of that folder. The learned ranker is fitted on --train only, for each
target without the tasks that may share images with it (its data set), neither as targets nor as sources. It sees which
transfers of --evaluate were measured, not how well they did.

Each setup is a scenario, measure, repetition and target, as in the thesis (section 5.2.2). Figures are means over the
setups of each scenario, then over scenarios. Intervals are 95 % percentile intervals of a bootstrap over data sets.
weightedtau, win rate and all choices are tie-safe: expectations over all orders of equal outcomes and equal scores.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from benchmarks.machine import describe
from benchmarks.transfer_evaluation import (
    Evaluated,
    evaluated_targets,
    fixed_strategies,
    learned_strategies,
    measure,
    win_rates,
)
from benchmarks.transfer_figures import draw_ranking
from benchmarks.transfer_report import Report, as_markdown, tables
from lifelong_core.develop.knowledge.transfer_folder import read_splits, read_transfer_folder
from lifelong_core.develop.transferability import bootstrap_weights

REPLICATES, QUICK_REPLICATES, QUICK_FITS = 2000, 200, 4


def evaluate(train: Path, folder: Path, *, replicates: int, most_fits: int | None = None) -> Report:
    """Fit the ranker on one folder and evaluate all strategies on the other."""
    outcomes = read_transfer_folder(folder)
    evaluated = Evaluated(outcomes, evaluated_targets(outcomes, read_splits(folder)))

    def show(done: int, folds: int) -> None:
        print(f"\rranker fitted {done} of {folds} times", end="\n" if done == folds else "", file=sys.stderr)

    strategies = {
        **fixed_strategies(evaluated),
        **learned_strategies(read_transfer_folder(train), evaluated, most_fits=most_fits, progress=show),
    }
    figures = {name: measure(evaluated, one) for name, one in strategies.items()}
    averaged = {name: measure(evaluated.mean_over_seeds, one) for name, one in strategies.items()}
    wins = win_rates(evaluated, strategies, figures)
    weights = bootstrap_weights(evaluated.targets.size, groups=evaluated.data_sets, replicates=replicates)
    return Report(evaluated, strategies, figures, averaged, wins, weights)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog=__doc__.partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--train", type=Path, required=True, help="folder with the outcomes that the ranker is fitted on"
    )
    parser.add_argument(
        "--evaluate", type=Path, required=True, help="folder with the outcomes to evaluate on"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"{QUICK_REPLICATES} bootstrap replicates instead of {REPLICATES}, and at most {QUICK_FITS} fits",
    )
    parser.add_argument("--plot", type=Path, help="PNG file for the bootstrapped ranks of all strategies")
    arguments = parser.parse_args()
    begin = time.perf_counter()
    report = evaluate(
        arguments.train,
        arguments.evaluate,
        replicates=QUICK_REPLICATES if arguments.quick else REPLICATES,
        most_fits=QUICK_FITS if arguments.quick else None,
    )
    print(f"machine: {json.dumps(describe('numpy', 'scipy', 'scikit-learn'))}")
    for title, rows in tables(report).items():
        print(f"\n{title}\n\n{as_markdown(rows)}")
    if arguments.plot:
        draw_ranking(report, arguments.plot)
    print(f"\n{time.perf_counter() - begin:.1f} s")
    if arguments.json:
        print(json.dumps(report.document()))


if __name__ == "__main__":
    main()
