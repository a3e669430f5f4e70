"""Features and fingerprints that the tests of all kinds and methods share."""

import numpy as np
from numpy.typing import NDArray

from lifelong_core.develop.fingerprints.extractor import ExtractorDocument, ExtractorReference
from lifelong_core.develop.fingerprints.feature_set import FeatureFingerprint, make_feature_fingerprint
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.fingerprints.fisher import FisherFingerprint, KeywordFingerprint
from lifelong_core.develop.fingerprints.gaussian import GaussianFingerprint, make_gaussian_fingerprint
from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint, make_histogram_fingerprint
from lifelong_core.values.preprocessing import Preprocessing

Array = NDArray[np.float64]

FEATURES = 5


def make_extractor(
    *, features: int = FEATURES, high: float = 3.0, architecture: str = "resnet34"
) -> ExtractorReference:
    """An extractor whose bins of each feature begin at 0 and end at `high`."""
    document = ExtractorDocument(
        architecture=architecture,
        weights="0" * 64,
        preprocessing=Preprocessing(),
        reference_images=100,
        reference_names=("example",),
    )
    return ExtractorReference(document, np.tile([0.0, high], (features, 1)))


EXTRACTOR = make_extractor()


def draw_features(seed: int, *, images: int = 40, features: int = FEATURES) -> Array:
    """Features such as a network with rectifiers and average pooling gives: not negative, skewed; some are 0."""
    rng = np.random.default_rng(seed)
    values = rng.gamma(rng.uniform(0.5, 3, features), rng.uniform(0.2, 1, features), (images, features))
    return np.where(rng.random((images, features)) < 0.1, 0.0, values).astype(np.float32).astype(np.float64)


def histogram_fingerprint(
    features: Array, extractor: ExtractorReference = EXTRACTOR, *, bins: int = 100
) -> HistogramFingerprint:
    return make_histogram_fingerprint(features, extractor, bins=bins, seed=3)


def gaussian_fingerprint(features: Array, extractor: ExtractorReference = EXTRACTOR) -> GaussianFingerprint:
    return make_gaussian_fingerprint(features, extractor, seed=3)


def feature_fingerprint(features: Array, extractor: ExtractorReference = EXTRACTOR) -> FeatureFingerprint:
    return make_feature_fingerprint(features, extractor, seed=3)


def fisher_fingerprint(features: Array, extractor: ExtractorReference = EXTRACTOR) -> FisherFingerprint:
    """A Fisher embedding with one entry for each feature, in place of one by a network."""
    return FisherFingerprint(extractor.digest, len(features), (features**2).mean(axis=0), seed=3)


def keyword_fingerprint(features: Array) -> KeywordFingerprint:
    """Keywords that depend on the means of the features."""
    order = np.argsort(features.mean(axis=0))
    return KeywordFingerprint(tuple(f"keyword {index}" for index in order[:2]))


def fingerprints_of(features: Array) -> dict[str, Fingerprint]:
    """By kind, the fingerprint of the features."""
    made = (
        histogram_fingerprint(features),
        gaussian_fingerprint(features),
        feature_fingerprint(features),
        fisher_fingerprint(features),
        keyword_fingerprint(features),
    )
    return {fingerprint.kind: fingerprint for fingerprint in made}
