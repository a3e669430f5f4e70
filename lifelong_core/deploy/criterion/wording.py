"""What a decision rule will reach, as a sentence."""

from lifelong_core.decision_rules.wording import METRIC_NAMES
from lifelong_core.deploy.criterion.expected_criterion import ExpectedCriterion


def describe_criterion(found: ExpectedCriterion) -> str:
    """What a rule will reach, as a sentence.

    Examples:
        >>> describe_criterion(ExpectedCriterion("TPR", 0.9, 0.86, 0.93, 0.95, 0.9, True, 0.31, 200, None))
        'Sensitivity 0.900 (0.860 to 0.930) expected here, target at least 0.9; cut-off 0.310.'
        >>> describe_criterion(ExpectedCriterion("PPV", 0.5, 0.4, 0.6, 0.95, 0.8, False, 0.31, 200, None))
        'Precision 0.500 (0.400 to 0.600) expected here, target at least 0.8: missed, and no cut-off reaches it; cut-off 0.310.'
    """  # noqa: E501 - one printed line
    name = METRIC_NAMES.get(found.metric, found.metric)
    target = ""
    if found.requirement is not None:
        missed = ": missed" if found.is_missed else ""
        unreachable = "" if found.is_reachable else f"{', and' if missed else ':'} no cut-off reaches it"
        target = f", target {found.requirement}{missed}{unreachable}"
    reached = f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"
    return f"{name[0].upper()}{name[1:]} {reached} expected here{target}; cut-off {found.cut_off:.3f}."
