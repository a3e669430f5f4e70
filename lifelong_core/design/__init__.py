"""Reward-learning loop: from a clinical problem to the metrics that fit it (thesis chapter 4)."""

from lifelong_core.design.interview.answer_texts import parse_answer
from lifelong_core.design.interview.interview import Interview, Stage, start_interview
from lifelong_core.design.interview.next_questions import next_questions
from lifelong_core.design.interview.proposals import Proposal, propose_answers
from lifelong_core.design.interview.views import format_answer
from lifelong_core.design.method.loader import MethodError
from lifelong_core.design.method.schema import Question
from lifelong_core.design.problem_fingerprint import ProblemFingerprint
from lifelong_core.design.recommendation.contradictions import Contradiction, contradictions
from lifelong_core.design.recommendation.document import Recommendation, RecommendedMetric, Step
from lifelong_core.design.recommendation.progress import Progress
from lifelong_core.design.recommendation.recommend import recommend
from lifelong_core.design.validation.acceptance import (
    AcceptanceOutcome,
    AcceptanceThreshold,
    check_thresholds,
)
from lifelong_core.design.validation.compare import compare
from lifelong_core.design.validation.comparison import (
    Headline,
    MetricRanking,
    ModelComparison,
    ModelRank,
    OverallRanking,
)
from lifelong_core.design.validation.result import SubgroupMetric, SubgroupResult, ValidationResult
from lifelong_core.design.validation.uncertainty.document import UncertaintyAwareScores, UncertaintySettings
from lifelong_core.design.validation.validate import validate
from lifelong_core.design.validation.values.metric_value import CutOff, MetricValue
from lifelong_core.design.validation.values.samples import ModelOutputs

__all__ = [
    "AcceptanceOutcome",
    "AcceptanceThreshold",
    "Contradiction",
    "CutOff",
    "Headline",
    "Interview",
    "MethodError",
    "MetricRanking",
    "MetricValue",
    "ModelComparison",
    "ModelOutputs",
    "ModelRank",
    "OverallRanking",
    "ProblemFingerprint",
    "Progress",
    "Proposal",
    "Question",
    "Recommendation",
    "RecommendedMetric",
    "Stage",
    "Step",
    "SubgroupMetric",
    "SubgroupResult",
    "UncertaintyAwareScores",
    "UncertaintySettings",
    "ValidationResult",
    "check_thresholds",
    "compare",
    "contradictions",
    "format_answer",
    "next_questions",
    "parse_answer",
    "propose_answers",
    "recommend",
    "start_interview",
    "validate",
]
