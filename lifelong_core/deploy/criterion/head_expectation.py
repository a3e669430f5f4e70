"""Value that the metric of a head's decision rule will have in its population, kept in the head's provenance."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from lifelong_core.decision_rules.rules import needs_cut_off
from lifelong_core.deploy.criterion.expected_criterion import ExpectedCriterion, expected_criterion
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.labeled import LabeledLogits
from lifelong_core.values.arrays import LARGEST_NUMBER
from lifelong_core.values.errors import LifelongError

KEY = "expected_criterion"
"""of the provenance"""


def with_expectation(head: PostProcessingHead, calibration: LabeledLogits) -> PostProcessingHead:
    """The head with what its rule's metric will be in a population of the assumed prevalence, in its provenance.

    Heads whose cut-off was not searched stay as they are; digests do not change.

    Args:
        head: fitted on these samples.
        calibration: labelled logits.
    """
    found = expected_criterion(head, calibration, head.assumed_prevalence)
    if found is None:
        return head
    return replace(head, provenance={**head.provenance, KEY: found.to_document()})


def expectation_of(head: PostProcessingHead) -> ExpectedCriterion | None:
    """The expectation in the provenance of a head; None: there is none that can be read.

    People may publish heads with any provenance, so that an unreadable one is no error.
    """
    document, rule = head.provenance.get(KEY), head.decision_rule
    if not isinstance(document, Mapping) or not needs_cut_off(rule):
        return None
    try:
        found = ExpectedCriterion.from_document(cast("Mapping[str, Any]", document))
    except (LifelongError, TypeError):
        return None
    numbers = (found.value, found.low, found.high, found.cases, found.needed_cases or 0)
    is_readable = all(_is_number(one) for one in numbers)
    return found if is_readable and found.metric == rule.metric else None


def _is_number(value: object) -> bool:
    """Whether it is a number that a float can hold; integers of a document have any size."""
    return isinstance(value, int | float) and abs(value) <= LARGEST_NUMBER
