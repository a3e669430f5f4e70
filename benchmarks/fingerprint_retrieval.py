"""Does a fingerprint find the original of a variant? Ranks of the originals, method by method."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from benchmarks.bundled_images import TASKS, VARIANTS, cut_task, make_variant
from benchmarks.fingerprint_extractors import Extractor
from lifelong_core.develop.fingerprints.distances.method import Method
from lifelong_core.develop.fingerprints.distances.registry import SMALL
from lifelong_core.develop.fingerprints.extractor import ExtractorReference
from lifelong_core.develop.fingerprints.feature_set import FeatureFingerprint, make_feature_fingerprint
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.fingerprints.histogram import make_histogram_fingerprint
from lifelong_core.values.arrays import Floats

Row = dict[str, Any]
Sample = tuple[str, str]
"""task, and a variant or ORIGINAL"""

ORIGINAL = "original"
PLACES = 2
"""An original in one of the first places counts as found."""

REFERENCE_SAMPLES = 120


@dataclass(frozen=True)
class FrechetOfFeatures(Method[FeatureFingerprint]):
    """FID from the features themselves: equal, and fast when there are fewer images than features.

    The last trace of `Frechet` is the sum of the singular values of X Y^T / sqrt((n_x - 1) (n_y - 1)), with X and Y the
    centred features, one row for each image.
    """

    fingerprint_type: ClassVar[type[Fingerprint]] = FeatureFingerprint
    is_symmetric: ClassVar[bool] = True
    is_zero_to_itself: ClassVar[bool] = True

    def _distances(self, sources: Sequence[FeatureFingerprint], target: FeatureFingerprint) -> Floats:
        return np.sqrt([max(0.0, _squared_frechet(source.rows, target.rows)) for source in sources])


def _squared_frechet(first: Floats, second: Floats) -> float:
    means = first.mean(axis=0), second.mean(axis=0)
    one, other = (
        (rows - mean) / np.sqrt(len(rows) - 1) for rows, mean in zip((first, second), means, strict=True)
    )
    roots = np.linalg.svd(one @ other.T, compute_uv=False).sum()
    return float(((means[0] - means[1]) ** 2).sum() + (one**2).sum() + (other**2).sum() - 2 * roots)


@dataclass(frozen=True)
class Pool:
    """Features of all tasks and variants by one extractor, for one division of the samples."""

    reference: ExtractorReference
    features: Mapping[Sample, np.ndarray]


def extract_pool(
    extractor: Extractor,
    seed: int,
    samples: int,
    *,
    tasks: Sequence[str] = tuple(TASKS),
    variants: Sequence[str] = tuple(VARIANTS),
) -> Pool:
    """Features of at most `samples` images of each task and variant; edges from the part that neither uses."""
    references = [
        extractor.features(cut_task(name, "reference", min(samples, REFERENCE_SAMPLES), seed).images)
        for name in tasks
    ]
    features: dict[Sample, np.ndarray] = {}
    for name in tasks:
        features[name, ORIGINAL] = extractor.features(cut_task(name, ORIGINAL, samples, seed).images)
        for variant in variants:
            images = make_variant(name, variant, samples, seed).images
            features[name, variant] = extractor.features(images)
    return Pool(extractor.reference(np.concatenate(references)), features)


def make_fingerprint(pool: Pool, features: np.ndarray, method: Method[Any]) -> Fingerprint:
    """The fingerprint that a method compares."""
    kind = method.fingerprint_type.kind
    if kind == FeatureFingerprint.kind:
        return make_feature_fingerprint(features, pool.reference)
    return make_histogram_fingerprint(features, pool.reference, bins=getattr(method, "bins", None) or SMALL)


def retrieve(
    pool: Pool, method: Method[Any], fingerprints: Mapping[Sample, Fingerprint], *, among_all: bool = False
) -> list[Row]:
    """For each variant as the target: the place of its original, and whether the first place is related to it.

    Args:
        pool: gives the order of the tasks.
        method: that ranks.
        fingerprints: of all tasks and variants.
        among_all: rank the originals and all other variants; else the originals only.
    """
    rows: list[Row] = []
    for target in pool.features:
        if target[1] == ORIGINAL:
            continue
        sources = [one for one in pool.features if one != target and (among_all or one[1] == ORIGINAL)]
        distances = method.distances([fingerprints[one] for one in sources], fingerprints[target])
        ranked = [sources[index] for index in np.argsort(distances, kind="stable")]
        place = ranked.index((target[0], ORIGINAL)) + 1
        rows.append(
            {
                "task": target[0],
                "variant": target[1],
                "place": place,
                "found": place <= PLACES,
                "first": ranked[0][0],
                "related": ranked[0][0] == target[0],
                "sources": len(sources),
            }
        )
    return rows


def retrieve_by(pool: Pool, method: Method[Any], *, among_all: bool = False) -> list[Row]:
    """`retrieve` with exact fingerprints of all samples."""
    made = {key: make_fingerprint(pool, one, method) for key, one in pool.features.items()}
    return retrieve(pool, method, made, among_all=among_all)


def found_share(rows: Sequence[Row], key: str = "found") -> float:
    """Share of the rows in which it is true."""
    return float(np.mean([row[key] for row in rows]))
