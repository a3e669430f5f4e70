"""Reward-learning loop: from a clinical problem to the metrics that fit it (thesis chapter 4)."""

from lifelong_core.design.interview.answer_texts import format_answer, parse_answer
from lifelong_core.design.interview.contradictions import Contradiction, contradictions
from lifelong_core.design.interview.interview import Interview, Stage, start_interview
from lifelong_core.design.interview.progress import Progress
from lifelong_core.design.interview.proposals import Proposal, propose_answers
from lifelong_core.design.method.errors import MethodError
from lifelong_core.design.method.schema import Question
from lifelong_core.design.problem_fingerprint import ProblemFingerprint
from lifelong_core.design.recommendation.document import Recommendation, RecommendedMetric, Step
from lifelong_core.design.recommendation.engine import next_questions, recommend
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
from lifelong_core.design.validation.displays import SubgroupMetric, SubgroupResult
from lifelong_core.design.validation.outputs import ModelOutputs
from lifelong_core.design.validation.result import ValidationResult
from lifelong_core.design.validation.uncertainty.document import UncertaintyAwareScores
from lifelong_core.design.validation.uncertainty.settings import UncertaintySettings
from lifelong_core.design.validation.validate import validate
from lifelong_core.design.validation.values.metric_value import CutOff, MetricValue

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
