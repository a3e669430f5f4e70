"""The benchmark of ranking strategies, on small folders of measured transfers."""

import csv
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks import transfer
from benchmarks.transfer_evaluation import (
    ALWAYS,
    LEARNED,
    RANDOM,
    SMALLEST,
    Evaluated,
    Strategy,
    evaluated_targets,
    find_relatives,
    fixed_strategies,
    gains,
    hide_outcomes,
    improvements,
    leave_out_folds,
    measure,
    oriented,
    win_rates,
    without_tasks,
)
from benchmarks.transfer_report import summarise
from lifelong_core.develop.knowledge.transfer_folder import read_splits, read_transfer_folder
from lifelong_core.develop.transferability import bootstrap_weights, setup_stability
from tests.tools import transfer_folder

DATA_SETS, TASKS_PER_SET, SEEDS = 7, 2, 2
SCENARIOS, MEASURES, METHODS = ("arch", "pretrain"), ("BA", "AUROC"), ("bKLD", "Manual")
TASKS = [f"set{number}_task{task}" for number in range(DATA_SETS) for task in range(TASKS_PER_SET)]
SETS = np.repeat(np.arange(DATA_SETS), TASKS_PER_SET)
VALIDATION = SETS >= 4
UNMEASURED = 9
"""Target without outcomes in the scenario pretrain."""


def write_folder(
    folder: Path, *, split: bool = True, prefix: str = "", scenarios: tuple[str, ...] = SCENARIOS
) -> Path:
    """Fourteen tasks of seven data sets, without equal outcomes; those of one data set are no legal pairs."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    outcomes = rng.uniform(0.2, 0.9, (len(SCENARIOS), len(MEASURES), SEEDS, len(TASKS), len(TASKS)))
    outcomes[..., SETS[:, np.newaxis] == SETS] = np.nan
    outcomes[1, ..., UNMEASURED] = np.nan
    np.savez(
        folder / "transfer_all.npz",
        tasks=[prefix + task for task in TASKS],
        scenarios=scenarios,
        measures=MEASURES,
        outcomes=outcomes[: len(scenarios)],
        baseline=rng.uniform(0.4, 0.6, (len(MEASURES), SEEDS, len(TASKS))),
        methods=METHODS,
        distances=rng.uniform(size=(len(METHODS), len(TASKS), len(TASKS))),
    )
    with (folder / "tasks_all.csv").open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["task", "split", "dataset", "num_classes", "num_samples"])
        for number, task in enumerate(TASKS):
            kind = "validation" if split and VALIDATION[number] else "development"
            table.writerow(
                [prefix + task, kind, f"{prefix}set{SETS[number]}", 2 + number % 3, 100 * (number + 1)]
            )
    return folder


def read(folder: Path) -> Evaluated:
    outcomes = read_transfer_folder(folder)
    return Evaluated(outcomes, evaluated_targets(outcomes, read_splits(folder)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("transfer") / "split")


def test_targets_are_the_validation_tasks_or_else_all(folder: Path, tmp_path: Path) -> None:
    assert read(folder).targets.tolist() == np.flatnonzero(VALIDATION).tolist()
    assert read(write_folder(tmp_path / "whole", split=False)).targets.tolist() == list(range(len(TASKS)))


def direct(evaluated: Evaluated, method: int) -> dict[str, float]:
    """Figures of a method by loops, from the definitions."""
    outcomes = evaluated.outcomes
    found: dict[str, list[float]] = {}
    for scenario in range(len(SCENARIOS)):
        rows: dict[str, list[float]] = {}
        for measured, seed, target in itertools.product(
            range(len(MEASURES)), range(SEEDS), evaluated.targets
        ):
            own = outcomes.outcomes[scenario, measured, seed, :, target]
            legal = ~np.isnan(own)
            if not legal.any():
                continue
            own, distance = own[legal], outcomes.distances[method, legal, target]
            top = own[np.argsort(distance)[:3]]
            rows.setdefault("weightedtau", []).append(stats.weightedtau(own, -distance).statistic)
            rows.setdefault("percentile", []).append(np.mean([(own <= one).mean() for one in top]))
            rows.setdefault("regret", []).append(np.mean((own.max() - top) / (1 - top)))
            rows.setdefault("improvement", []).append(
                np.mean(top - outcomes.baseline[measured, seed, target])
            )
        for name, values in rows.items():
            found.setdefault(name, []).append(float(np.mean(values)))
    return {name: float(np.mean(values)) for name, values in found.items()}


def test_the_last_line_holds_the_means_of_every_strategy(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plot, training = (
        tmp_path / "ranking.png",
        write_folder(tmp_path / "training", prefix="other_", scenarios=("arch",)),
    )
    arguments = [
        "--train",
        str(training),
        "--evaluate",
        str(folder),
        "--json",
        "--quick",
        "--plot",
        str(plot),
    ]
    monkeypatch.setattr("sys.argv", ["benchmarks.transfer", *arguments])
    transfer.main()
    lines = capsys.readouterr().out.splitlines()
    found = json.loads(lines[-1])
    assert set(found) == {*METHODS, SMALLEST, RANDOM, LEARNED, ALWAYS}
    for figures in found.values():
        assert set(figures) == {"weightedtau", "regret", "percentile", "improvement", "win_rate"}
        assert np.isfinite(list(figures.values())).all()
    for number, method in enumerate(METHODS):
        expected = direct(read(folder), number)
        assert {name: found[method][name] for name in expected} == pytest.approx(expected, abs=1e-4)
    assert found[RANDOM]["weightedtau"] == 0
    assert any("Win rates" in line for line in lines)
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_methods_compete_with_each_other_and_a_random_order_with_all(folder: Path) -> None:
    evaluated = read(folder)
    strategies = fixed_strategies(evaluated)
    rates = win_rates(
        evaluated, strategies, {name: measure(evaluated, one) for name, one in strategies.items()}
    )
    assert (rates["bKLD"] + rates["Manual"] >= 1).all()
    assert (rates["bKLD"] + rates["Manual"] < 1.5).all()
    assert (np.abs(rates[RANDOM] - 1 / 3) < 0.15).all()


def test_tasks_of_one_data_set_or_never_paired_are_relatives(folder: Path) -> None:
    outcomes = read_transfer_folder(folder)
    assert np.array_equal(find_relatives(outcomes), SETS[:, np.newaxis] == SETS)
    outcomes.outcomes[..., 0, 4] = outcomes.outcomes[..., 4, 0] = np.nan
    related = find_relatives(outcomes)
    assert related[0, 4]
    assert related[4, 0]
    assert related.sum() == len(TASKS) * TASKS_PER_SET + 2


def test_a_target_is_ranked_without_its_relatives(folder: Path, tmp_path: Path) -> None:
    evaluated, outcomes = read(folder), read_transfer_folder(folder)
    folds = leave_out_folds(outcomes, evaluated)
    assert len(folds) == len(set(SETS[VALIDATION]))
    for left_out, places in folds:
        for place in places:
            own = SETS[evaluated.targets[place]]
            assert left_out == {task for task, one in zip(TASKS, SETS, strict=True) if one == own}
    assert sorted(place for _, places in folds for place in places) == list(range(evaluated.targets.size))
    (first, second) = leave_out_folds(outcomes, evaluated, 2)
    assert first[0] == folds[0][0] | folds[2][0]
    assert second == folds[1]
    others = read_transfer_folder(write_folder(tmp_path / "training", prefix="other_"))
    assert leave_out_folds(others, evaluated) == [(frozenset(), list(range(evaluated.targets.size)))]


def test_the_ranker_sees_which_pairs_were_measured_and_not_how_well_they_did(folder: Path) -> None:
    outcomes = read_transfer_folder(folder)
    hidden = hide_outcomes(outcomes).outcomes
    assert np.array_equal(np.isnan(hidden), np.isnan(outcomes.outcomes))
    assert np.unique(hidden[~np.isnan(hidden)]).size == 1


def test_tasks_that_are_left_out_are_neither_targets_nor_sources(folder: Path) -> None:
    outcomes = read_transfer_folder(folder)
    kept = without_tasks(outcomes, frozenset(TASKS[:2]))
    assert kept.tasks == tuple(TASKS[2:])
    assert np.array_equal(kept.outcomes, outcomes.outcomes[..., 2:, 2:], equal_nan=True)
    assert np.array_equal(kept.distances, outcomes.distances[..., 2:, 2:])
    assert np.array_equal(kept.baseline, outcomes.baseline[..., 2:])


def test_a_suggestion_of_no_transfer_improves_nothing_and_harms_nothing(folder: Path) -> None:
    evaluated = read(folder)
    scores = np.broadcast_to(np.linspace(-1, 1, len(TASKS)), (1, evaluated.targets.size, len(TASKS)))
    taken = np.broadcast_to(scores[0] > 0, evaluated.performance.shape)
    transfer_always, may_decline = Strategy(scores), Strategy(scores, declines=True)
    for values in (improvements, gains):
        always, declining = values(evaluated, transfer_always), values(evaluated, may_decline)
        assert np.array_equal(declining[taken], always[taken], equal_nan=True)
        assert np.array_equal(
            declining[~taken], np.where(np.isnan(always), np.nan, 0)[~taken], equal_nan=True
        )
    always, declining = measure(evaluated, transfer_always), measure(evaluated, may_decline)
    assert np.array_equal(always["weightedtau"], declining["weightedtau"], equal_nan=True)


def test_intervals_resample_data_sets(folder: Path) -> None:
    evaluated = read(folder)
    weights = bootstrap_weights(evaluated.targets.size, groups=evaluated.data_sets, replicates=300)
    figure = np.ones((2, 2, 2, evaluated.targets.size)) * SETS[evaluated.targets]
    summary = summarise(figure, weights)
    assert (summary.low, summary.mean, summary.high) == (4, 5, 6)
    single = summarise(figure, bootstrap_weights(evaluated.targets.size, replicates=300))
    assert single.high - single.low < summary.high - summary.low


def test_findings_on_the_published_development_tasks() -> None:
    evaluated = read(transfer_folder())
    assert evaluated.targets.size == 28
    figures = {name: measure(evaluated, one) for name, one in fixed_strategies(evaluated).items()}
    everyone = np.ones((1, 28))
    taus = {name: summarise(one["weightedtau"], everyone).mean for name, one in figures.items()}
    assert taus[RANDOM] == 0
    assert taus[SMALLEST] == pytest.approx(0.096, abs=5e-4)
    assert max(taus[method] for method in evaluated.outcomes.methods) == pytest.approx(0.047, abs=5e-4)
    by_method = np.stack([oriented(figures[method]) for method in evaluated.outcomes.methods], axis=-1)
    assert setup_stability(by_method) == pytest.approx([0.65, 0.03, 0.39, 0.21, 0.02], abs=5e-3)
