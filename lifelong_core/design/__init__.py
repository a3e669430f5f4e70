"""Reward-learning loop: from a clinical problem to the metrics that fit it (thesis chapter 4)."""

from lifelong_core.design.answer_texts import format_answer, parse_answer
from lifelong_core.design.contradictions import Contradiction, contradictions
from lifelong_core.design.fingerprint import ProblemFingerprint
from lifelong_core.design.interview import Interview, Stage, start_interview
from lifelong_core.design.method_error import MethodError
from lifelong_core.design.method_schema import Question
from lifelong_core.design.progress import Progress
from lifelong_core.design.proposals import Proposal, propose_answers
from lifelong_core.design.recommendation import Recommendation, RecommendedMetric, Step
from lifelong_core.design.recommending import next_questions, recommend
from lifelong_core.design.validation.acceptance import (
    AcceptanceOutcome,
    AcceptanceThreshold,
    check_thresholds,
)
from lifelong_core.design.validation.comparing import compare
from lifelong_core.design.validation.comparison import (
    MetricRanking,
    ModelComparison,
    ModelRank,
    OverallRanking,
)
from lifelong_core.design.validation.displays import SubgroupMetric, SubgroupResult
from lifelong_core.design.validation.metric_value import CutOff, MetricValue
from lifelong_core.design.validation.outputs import ModelOutputs
from lifelong_core.design.validation.result import ValidationResult
from lifelong_core.design.validation.validating import validate

__all__ = [
    "AcceptanceOutcome",
    "AcceptanceThreshold",
    "Contradiction",
    "CutOff",
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
