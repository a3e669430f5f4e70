"""Reward-learning loop: from a clinical problem to the metrics that fit it (thesis chapter 4)."""

from lifelong_core.design.contradictions import Contradiction, contradictions
from lifelong_core.design.fingerprint import ProblemFingerprint
from lifelong_core.design.method_error import MethodError
from lifelong_core.design.method_schema import Question
from lifelong_core.design.proposals import Proposal, propose_answers
from lifelong_core.design.recommendation import Recommendation, RecommendedMetric, Step
from lifelong_core.design.recommending import next_questions, recommend

__all__ = [
    "Contradiction",
    "MethodError",
    "ProblemFingerprint",
    "Proposal",
    "Question",
    "Recommendation",
    "RecommendedMetric",
    "Step",
    "contradictions",
    "next_questions",
    "propose_answers",
    "recommend",
]
