"""A caution where a head, whose decisions are judged, decides by another rule than the recommendation asks for."""

from collections.abc import Iterator, Sequence

from lifelong_core.decision_rules.wording import describe_rule
from lifelong_core.deploy import PostProcessingHead
from lifelong_core.design import Recommendation
from lifelong_core.design.recommendation.stated_rule import recommended_rule


def rule_cautions(
    recommendation: Recommendation, head: PostProcessingHead, class_names: Sequence[str]
) -> Iterator[str]:
    """The caution; nothing where head and recommendation agree, or the recommendation asks for no rule."""
    wanted = recommended_rule(recommendation).rule
    if wanted is not None and wanted != head.decision_rule:
        own, other = (describe_rule(rule, tuple(class_names)) for rule in (head.decision_rule, wanted))
        yield f"The head decides by another rule ({own}) than the recommendation asks for ({other}): refit it."
