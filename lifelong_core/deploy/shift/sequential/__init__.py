"""Evidence that the prevalence differs from what the head assumes, gathered over cycles, valid over endless looks."""

from lifelong_core.deploy.evidence.detector import ShiftEvidence, gather_evidence
from lifelong_core.deploy.evidence.reference import ScoreReference
from lifelong_core.deploy.evidence.scores import BucketScores, bucket_scores

__all__ = ["BucketScores", "ScoreReference", "ShiftEvidence", "bucket_scores", "gather_evidence"]
