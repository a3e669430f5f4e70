"""Windows and buckets in the forms that a cycle accepts: raw logits, or their summary."""

import hashlib
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from lifelong_core.arrays import Floats, Integers, Logits, as_groups, as_logits
from lifelong_core.deploy.assumption import AssumptionReference
from lifelong_core.deploy.evidence import BucketScores, bucket_scores
from lifelong_core.deploy.head import PostProcessingHead
from lifelong_core.deploy.quantification.summary import WindowSummary
from lifelong_core.errors import InvalidInputError

Bucket: TypeAlias = ArrayLike | tuple[ArrayLike, ArrayLike | None] | WindowSummary
"""New samples: their logits, (N, C); a pair of logits and groups, (N,); or their summary."""


def fingerprint(window: ArrayLike | WindowSummary, groups: ArrayLike | None) -> tuple[int, str | None]:
    """Number of samples, and SHA-256 (hex) over logits and groups; 0 and None where they are not legal."""
    if isinstance(window, WindowSummary):
        return window.samples, window.digest
    try:
        logits = as_logits(window)
        keys = as_groups(groups, samples=logits.shape[0])
    except InvalidInputError:
        return 0, None
    digest = hashlib.sha256(f"{logits.shape}\n".encode())
    digest.update(logits.astype("<f4", copy=False).tobytes())
    if keys is not None:
        # Which samples belong together is what counts, not how the pseudonyms sort: each is named by its first sample.
        _, first, member = np.unique(keys, return_index=True, return_inverse=True)
        digest.update(first[member].astype("<i8").tobytes())
    return logits.shape[0], digest.hexdigest()


def points_of(window: ArrayLike | WindowSummary) -> tuple[Logits, Integers]:
    """Logits of distinct rows, (U, C), and how many samples are there, (U,)."""
    if isinstance(window, WindowSummary):
        return window.points()
    logits = as_logits(window)
    counts: Integers = np.ones(len(logits), dtype=np.int64)
    return logits, counts


def mean_features(window: ArrayLike | WindowSummary, reference: AssumptionReference) -> Floats:
    """Mean over the samples of what the assumption test looks at, shape (M,)."""
    if isinstance(window, WindowSummary):
        return window.moments / window.samples
    logits = as_logits(window)
    return reference.feature_sums(logits) / len(logits)


def scores_of(head: PostProcessingHead, bucket: Bucket) -> BucketScores:
    """What the sequential test looks at.

    Raises:
        InvalidInputError: the logits are not finite or do not fit the head.
    """
    if isinstance(bucket, WindowSummary):
        return _summary_scores(head, bucket)
    if isinstance(bucket, tuple):
        logits, groups = cast("tuple[ArrayLike, ArrayLike | None]", bucket)
        return bucket_scores(head, logits, groups=groups)
    return bucket_scores(head, bucket)


def _summary_scores(head: PostProcessingHead, summary: WindowSummary) -> BucketScores:
    logits, counts = summary.points()
    clusters = summary.clusters()
    if clusters is None:
        return bucket_scores(head, logits, counts=counts)
    sizes = clusters.sizes
    if round(float(sizes.sum())) == summary.samples:
        return bucket_scores(head, logits[clusters.row], counts=clusters.counts, groups=clusters.group)
    # Only a sample of the groups is kept: their samples are taken to say all the same.
    design_effect = float((sizes**2).sum() / sizes.sum())
    return bucket_scores(head, logits, counts=counts, design_effect=design_effect, largest=float(sizes.max()))
