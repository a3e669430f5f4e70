"""Words and colours of values: what a number in a table, a state timeline or a panel of numbers means."""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from grafana.sdk import dashboard

Words: TypeAlias = Sequence[tuple[float, str, str]] | Sequence[tuple[str, str, str]]
"""Value, word and colour, in the order of the legend."""

STATES: Final[Words] = (
    (8, "not watched", "dark-red"),
    (7, "refuses", "red"),
    (6, "misses its target", "red"),
    (5, "labels contradict", "dark-orange"),
    (4, "proposal waits", "blue"),
    (3, "shifted, no swap", "orange"),
    (2, "at risk", "yellow"),
    (1, "shifted, pinned", "super-light-orange"),
    (0, "fits", "green"),
    (-1, "answers no client", "gray"),
)
"""Values of lifelong:population_state: what needs a person, most urgent first."""
OUTCOMES: Final[Words] = ((0, "keep", "green"), (1, "swap", "purple"), (2, "refuse", "red"))
"""Values of lifelong:population_outcome."""
ACCEPTANCE: Final = ((1, "reached", "green"), (0.5, "at risk", "yellow"), (0, "missed", "red"))
AGREEMENT: Final[Words] = ((1, "agree", "green"), (0, "disagree", "red"))
REACHABLE: Final = ((1, "reachable", "green"), (0, "out of reach", "red"))
SEVERITIES: Final[Words] = (
    (3, "critical", "red"),
    (2, "warning", "orange"),
    (1, "info", "blue"),
)
"""Values of `firing`, most urgent first."""

FAULTS: Final[Mapping[str, str]] = {
    "down": "Prometheus does not reach it",
    "store_unreachable": "it cannot read the database",
    "log_degraded": "predictions go to the spool",
    "model_failed": "a model cannot be loaded",
    "model_without_head": "a promoted model has no head",
    "head_damaged": "an active head is damaged",
    "other_preprocessing": "images are preprocessed differently than at calibration",
    "gpu_unused": "graphs run on the CPU although CUDA is installed",
    "spool_damaged": "records of the spool cannot be delivered",
}
"""Values of the label `fault` of lifelong:process_fault."""

REASONS: Final[Mapping[str, str]] = {
    "calibration_unidentifiable": "The calibration set does not tell the classes apart.",
    "classes_differ": "Window and calibration set have other classes.",
    "window_invalid": "Logits of the window are not valid.",
    "window_too_small": "The window has too few predictions.",
    "prevalence_changed": "The prevalence changed within the window.",
    "prevalence_fluctuates": "The prevalence fluctuates within the window.",
    "prevalence_unchanged": "The predictions show no shift.",
    "evidence_insufficient": "The evidence of a shift is not sufficient yet.",
    "prevalence_shifted": "The prevalence has shifted.",
    "calibration_changed": "The calibration set has changed since the head was fitted.",
    "assumption_violated": "More than the prevalence has changed.",
    "estimate_pooled": "The estimate uses other environments, too.",
    "labels_combined": "The estimate uses labels, too.",
    "step_limited": "The policy limits the step to the new prevalence.",
    "rule_refitted": "The cut-off of the decision rule was searched again.",
    "target_unreachable": "No cut-off reaches the target of the decision rule.",
    "gain_too_small": "A swap would save too little.",
    "gain_sufficient": "A swap saves enough cost.",
    "probability_gain_sufficient": "A swap improves the probabilities enough.",
    "rule_gain_sufficient": "A swap improves the metric of the decision rule enough.",
    "head_pinned": "A person pinned the head.",
    "proposal_rejected": "A person rejected this head.",
    "cooling_down": "The last swap is too recent.",
    "traffic_unusual": "The traffic is unusual: a person decides.",
    "performance_missed": "The estimated performance misses its threshold.",
    "performance_at_risk": "The estimated performance may miss its threshold.",
}
"""Codes of the reasons of a cycle, as short sentences without figures."""


def mapping_of(words: Words | Mapping[str, str]) -> list[dashboard.ValueMapping]:
    """Grafana's value mapping; texts without colours keep that of the panel."""
    rows = [(value, text, None) for value, text in words.items()] if isinstance(words, Mapping) else words
    options = {
        f"{value:g}" if isinstance(value, int | float) else value: dashboard.ValueMappingResult(
            text=text, color=colour, index=index
        )
        for index, (value, text, colour) in enumerate(rows)
    }
    return [dashboard.ValueMap(options)]
