"""On how many groups values rest, and what costs and class shares."""

import numpy as np
import pytest

from lifelong_core.design import ValidationResult, validate
from lifelong_core.design.report.basis import (
    aggregation_lines,
    cost_line,
    groups_behind,
    rests_on,
    samples_text,
)
from lifelong_core.design.report.pages import validation_html
from lifelong_core.design.report.words import exact, interval_in_words, side_by_side, signed
from tests.unit.design.validations import metric, recommending, simulated

LABELS, PROBABILITIES = simulated(400, 2)
GROUPS = np.arange(400) // 2
COSTS = ((0.0, 1.0), (50.0, 0.0))
IN_USE = {"prevalences_representative": False, "target_prevalences": (0.98, 0.02), "costs": COSTS}
EC = metric("EC", parameters={"costs": COSTS})
EC_IN_USE = metric("EC", parameters={"costs": COSTS, "prevalence": (0.98, 0.02)})


def found(*metrics, aggregation: str = "by_group", **answers) -> ValidationResult:
    answers = {"number_of_classes": 2, "prevalences_representative": True, **answers}
    return validate(
        recommending(*metrics, **answers),
        LABELS,
        probabilities=PROBABILITIES,
        groups=GROUPS,
        aggregation=aggregation,
        replicates=20,
    )


def test_each_value_tells_its_groups():
    result = found("TPR", "AUROC", "ECE", "AC")
    of_class = [int(sum((LABELS[g == GROUPS] == k).any() for g in np.unique(GROUPS))) for k in range(2)]
    both = int(sum(np.unique(LABELS[g == GROUPS]).size == 2 for g in np.unique(GROUPS)))
    texts = {(one.label, one.class_index): groups_behind(result, one) for one in result.values}
    assert texts["TPR", 0] == f"{of_class[0]} of 200"
    assert texts["TPR", 1] == f"{of_class[1]} of 200"
    few, many = sorted(of_class)
    assert texts["TPR", None] == (f"{few} of 200" if few == many else f"{few} to {many} of 200")
    assert texts["AUROC", None] == f"{both} of 200"
    assert texts["ECE", None] == "pooled"
    assert texts["AC", None] == "200"


def test_pooled_metrics_are_named_with_the_reason():
    result = found("ECE", "AC", "BS")
    assert samples_text(result).endswith("; metrics are means over groups, but for those that are pooled")
    assert aggregation_lines(result)[-1] == "ECE: pooled over all samples: in single groups it says nothing."
    assert "of each group, then their mean; pooled: ECE</dd>" in validation_html(result)
    alone = found("AC")
    assert samples_text(alone).endswith("; each metric is a mean over groups")
    assert len(aggregation_lines(alone)) == 1
    assert aggregation_lines(found("AC", aggregation="pooled")) == []


def test_two_costs_are_told_apart():
    in_use = found(EC_IN_USE, **IN_USE)
    said = interval_in_words(in_use.adjusted_expected_cost.adjusted)
    assert cost_line(in_use) == (
        f"At the class shares of use (costs 50:1, prevalence 0.02), a decision costs {said} on average, pooled over the"
        " samples. This is the EC above."
    )
    representative = {**IN_USE, "prevalences_representative": True}
    assert cost_line(found(EC, **representative)).endswith(
        " The EC above is another cost: costs 50:1, class shares of each group, a mean over groups."
    )
    pooled = cost_line(found(EC, aggregation="pooled", **representative))
    assert "pooled" not in pooled
    assert pooled.endswith(" The EC above is another cost: costs 50:1, prevalence 0.5.")
    assert cost_line(found("AC", **IN_USE)).endswith("pooled over the samples.")
    assert cost_line(found("AC")) is None


def test_costs_of_groups_hold_at_the_class_shares_of_each():
    result = found(EC)
    assert rests_on(result, result.value("EC")) == "costs 50:1, class shares of each group"


@pytest.mark.parametrize("error", [1.08e-14, -1e-14, -0.0])
def test_rounding_errors_are_0(error):
    assert exact(error) == "0.0"
    assert signed(error) == "0.000"
    assert side_by_side([error, 0.0, 0.25]) == ["0", "0", "0.250"]
