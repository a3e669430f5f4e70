"""How often intervals of paired differences hold the true difference, and how often equal models are told apart.

    python -m benchmarks.paired_differences [--json] [--quick]

Studies of two models that find the same cases hard, three classes, single cases or groups of four. The truth of a
setting is the mean of the differences over many large studies. Beside the coverage stands the width of the interval of
the expected cost against that of two independent values. For equally good models: how often some subgroup of eight
counts as different, each by itself and all together, and the level of the exact tests of equally many errors, over
groups and over single cases.
"""

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.machine import describe
from lifelong_core.deploy import bayes_decisions
from lifelong_core.design import ModelOutputs, ProblemFingerprint, Recommendation, recommend
from lifelong_core.design.recommendation.document import RecommendedMetric
from lifelong_core.design.validation.differences import MetricDifference
from lifelong_core.design.validation.paired import PairedValidation
from lifelong_core.design.validation.validation_settings import ValidationSettings
from lifelong_core.promotion.decision_changes import sign_flip_test
from lifelong_core.values.arrays import Floats, Integers, softmax

SEED = 0
CLASSES = 3
COSTS = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [9.0, 3.0, 0.0]])
LEVEL = 0.95
STUDIES, QUICK_STUDIES = 400, 60
REPLICATES = 1000
LARGE_STUDIES, LARGE = 20, 50_000
WARDS = 8


@dataclass(frozen=True)
class Setting:
    """How the cases of a study are drawn."""

    cases: int
    group_size: int
    gap: float
    """how much stronger the signal of the new model is"""


SETTINGS = (
    Setting(60, 1, 0.0),
    Setting(60, 1, 0.5),
    Setting(240, 1, 0.0),
    Setting(240, 1, 0.5),
    Setting(240, 4, 0.0),
    Setting(240, 4, 0.5),
    Setting(960, 4, 0.5),
)


def recommendation() -> Recommendation:
    """EC with COSTS, and AUROC of each class."""
    return recommend(
        ProblemFingerprint(
            number_of_classes=CLASSES,
            class_scores_available=True,
            decision_rule="cost_benefit",
            unequal_severity=True,
            costs_available=True,
            costs=tuple(map(tuple, COSTS.tolist())),
            unequal_interest=False,
            prevalences_representative=False,
            target_prevalences_known=False,
            assumed_prevalences="test_data",
            calibration_assessment=False,
            dependent_cases=False,
            invalid_outputs=False,
        )
    )


def draw(setting: Setting, seed: int, cases: int | None = None) -> tuple[Integers, Floats, Floats, Integers]:
    """Labels, probabilities of both models, and groups whose cases are hard in common."""
    rng = np.random.default_rng(seed)
    size = cases or setting.cases
    groups = np.arange(size) // setting.group_size
    labels = rng.integers(CLASSES, size=size)
    hardness = rng.normal(size=(groups[-1] + 1, CLASSES))[groups] + rng.normal(
        scale=0.7, size=(size, CLASSES)
    )
    signal = np.eye(CLASSES)[labels]

    def probabilities(strength: float, group_noise: Floats) -> Floats:
        own = 0.6 * rng.normal(size=(size, CLASSES)) + group_noise[groups]
        return softmax(strength * signal + hardness + own)

    noises = 0.4 * rng.normal(size=(2, groups[-1] + 1, CLASSES))
    return labels, probabilities(2.0 + setting.gap, noises[0]), probabilities(2.0, noises[1]), groups


def paired(setting: Setting, seed: int, replicates: int, cases: int | None = None) -> PairedValidation:
    """One study."""
    labels, new, current, groups = draw(setting, seed, cases)
    wards = np.random.default_rng(seed).integers(WARDS, size=groups[-1] + 1)[groups]
    options = ValidationSettings.of(
        recommendation(),
        labels,
        groups=groups if setting.group_size > 1 else None,
        metadata={"ward": wards.astype(str)} if cases is None and setting.cases >= 240 else None,
        class_names=None,
        thresholds=(),
        replicates=replicates,
        level=LEVEL,
        rng=seed,
    )
    outputs = [
        ModelOutputs(probabilities=one, decisions=bayes_decisions(one, COSTS)) for one in (new, current)
    ]
    return PairedValidation.of(options, ("new", outputs[0]), ("current", outputs[1]))


def differences(study: PairedValidation) -> dict[str, MetricDifference]:
    """EC, AUROC of class 2, BA, NLL and ECE."""
    found = {f"{one.document.label} {one.document.class_index}": one.document for one in study.differences()}
    names = ("BA", "NLL", "ECE")
    others = study.of_metrics([(name, RecommendedMetric(metric=name, per_class=False)) for name in names])
    return {
        "EC": found["EC None"],
        "AUROC of a class": found["AUROC 2"],
        **dict(zip(names, others, strict=True)),
    }


def truth(setting: Setting) -> dict[str, float]:
    """Mean differences over large studies; those of ECE depend on the number of cases, as its bias does not."""
    large = [differences(paired(setting, 10_000_000 + study, 10, LARGE)) for study in range(LARGE_STUDIES)]
    return {name: float(np.mean([one[name].number("estimate") for one in large])) for name in large[0]}


def coverage(setting: Setting, studies: int) -> dict[str, Any]:
    """Share of the studies whose interval holds the truth, and the mean width against that of unpaired intervals."""
    true = truth(setting)
    held = {name: [0, 0] for name in true}
    widths: dict[str, list[float]] = {"EC": []}
    for study in range(studies):
        made = paired(setting, study, REPLICATES)
        for name, one in differences(made).items():
            if one.has_interval:
                held[name][0] += one.number("low") <= true[name] <= one.number("high")
                held[name][1] += 1
            if name == "EC":
                widths[name].append(_width(one) / _unpaired(made))
    return {
        "cases": setting.cases,
        "group_size": setting.group_size,
        "gap": setting.gap,
        "true_difference": true,
        "coverage": {name: inside / total for name, (inside, total) in held.items()},
        "width_against_unpaired": float(np.mean(widths["EC"])),
    }


def _width(one: Any) -> float:
    return one.number("high") - one.number("low")


def _unpaired(study: PairedValidation) -> float:
    return math.hypot(*(_width(model.result.value("EC")) for model in (study.new, study.current)))


def equal_models(setting: Setting, studies: int) -> dict[str, Any]:
    """How often equally good models are told apart."""
    told = np.array([list(_told_apart(setting, study)) for study in range(studies)])
    names = ("a_subgroup_alone", "a_subgroup_among_all", "exact_test_over_groups", "exact_test_over_cases")
    shares = dict(zip(names, told.mean(axis=0).tolist(), strict=True))
    return {"cases": setting.cases, "group_size": setting.group_size, **shares}


def _told_apart(setting: Setting, study: int) -> Iterator[bool]:
    made = paired(setting, study, REPLICATES)
    wards = made.subgroup_differences()
    yield any(one.direction != "open" for one in wards)
    yield any(one.direction_among_all != "open" for one in wards)
    new, current = made.new.samples, made.current.samples
    gain = (new.decisions == new.labels).astype(np.int64) - (current.decisions == new.labels)
    yield sign_flip_test(np.bincount(new.unit, weights=gain).astype(np.int64)).exact <= 1 - LEVEL
    yield sign_flip_test(gain).exact <= 1 - LEVEL


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="end with one JSON object")
    parser.add_argument("--quick", action="store_true", help="few studies")
    options = parser.parse_args()
    studies = QUICK_STUDIES if options.quick else STUDIES
    covered = []
    for setting in SETTINGS[:3] if options.quick else SETTINGS:
        covered.append(coverage(setting, studies))
        print(covered[-1], flush=True)
    equal = []
    for setting in (Setting(240, 1, 0.0), Setting(240, 4, 0.0)):
        equal.append(equal_models(setting, studies))
        print(equal[-1], flush=True)
    found = {
        "machine": describe("numpy", "scipy"),
        "seed": SEED,
        "studies": studies,
        "replicates": REPLICATES,
        "level": LEVEL,
        "coverage": covered,
        "equal_models": equal,
    }
    if options.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
