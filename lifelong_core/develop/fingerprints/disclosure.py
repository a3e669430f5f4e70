"""What a fingerprint reveals of the images that it was made of."""

from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.fingerprints.fisher import FisherFingerprint, KeywordFingerprint
from lifelong_core.develop.fingerprints.gaussian import GaussianFingerprint
from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint, Privacy
from lifelong_core.values.documents import FrozenDocument

_NO_GUARANTEE = (
    "There is no differential privacy: with the features of all other images, those of the remaining one can be "
    "narrowed down, and whether an image was used can be tested."
)


class Disclosure(FrozenDocument):
    """Figures to read before a fingerprint is shared. Only `privacy` is a guarantee."""

    kind: str
    samples: int | None = None
    """images; None: the fingerprint needs none; of a private fingerprint, an estimate"""
    minimum_samples: int | None = None
    """below it, the fingerprint describes single images: fewer images than bins fill most bins alone, and a covariance
    of no more images than features spans exactly these images; None: no number is enough, or none is needed"""
    features: int | None = None
    bins: int | None = None
    """of each feature"""
    occupied_bins: int | None = None
    """of all features"""
    smallest_occupied_bin: int | None = None
    """images in it"""
    single_image_bins: int | None = None
    """bins of all features that hold exactly one image"""
    privacy: Privacy | None = None
    """None: no differential privacy"""
    describes_single_images: bool
    """True: it holds features of single images, or has fewer samples than `minimum_samples` and no privacy"""
    statements: tuple[str, ...]
    """the same as sentences"""


def disclosure(fingerprint: Fingerprint) -> Disclosure:
    """What a fingerprint of any kind reveals.

    Examples:
        >>> disclosure(KeywordFingerprint(("x-ray", "thorax"))).statements
        ('It holds keywords that people chose, and nothing of an image.',)
    """
    if isinstance(fingerprint, HistogramFingerprint):
        return _of_histograms(fingerprint)
    if isinstance(fingerprint, GaussianFingerprint):
        return _of_means(
            fingerprint,
            fingerprint.samples,
            fingerprint.features,
            fingerprint.features + 1,
            "It holds the means and covariances",
        )
    if isinstance(fingerprint, FisherFingerprint):
        statement = (
            "It holds the mean sensitivity of a model to its weights, which depends on images and labels,"
        )
        return _of_means(fingerprint, fingerprint.samples, fingerprint.features, None, statement)
    if isinstance(fingerprint, KeywordFingerprint):
        statement = "It holds keywords that people chose, and nothing of an image."
        return Disclosure(kind=fingerprint.kind, describes_single_images=False, statements=(statement,))
    return Disclosure(
        kind=fingerprint.kind,
        samples=getattr(fingerprint, "samples", None),
        features=getattr(fingerprint, "features", None),
        describes_single_images=not fingerprint.is_shareable,
        statements=(
            "It holds the features of each image, by which an image can be recognised. Do not share it.",
        ),
    )


def _of_histograms(fingerprint: HistogramFingerprint) -> Disclosure:
    occupied = fingerprint.counts[fingerprint.counts > 0]
    smallest, single = int(occupied.min()), int((occupied == 1).sum())
    privacy = fingerprint.privacy
    if privacy is None:
        statements = (
            f"It holds the histograms and means of {fingerprint.features} features of {fingerprint.samples} images.",
            f"The smallest occupied bin counts {smallest}; {single} of {occupied.size} occupied bins hold one image.",
            _NO_GUARANTEE,
        )
    else:
        statements = (
            f"Its histograms have noise, and all else is computed from these: epsilon = {privacy.epsilon:g}, delta = "
            f"{privacy.delta:g} for all together, if no patient has more than {privacy.images_per_patient} of the "
            "sampled images.",
            "Each further private fingerprint of the same images adds its epsilon and its delta.",
        )
    return Disclosure(
        kind=fingerprint.kind,
        samples=fingerprint.samples,
        minimum_samples=fingerprint.bins,
        features=fingerprint.features,
        bins=fingerprint.bins,
        occupied_bins=int(occupied.size),
        smallest_occupied_bin=smallest,
        single_image_bins=single,
        privacy=privacy,
        describes_single_images=privacy is None and fingerprint.samples < fingerprint.bins,
        statements=statements,
    )


def _of_means(
    fingerprint: Fingerprint, samples: int, features: int, minimum: int | None, content: str
) -> Disclosure:
    return Disclosure(
        kind=fingerprint.kind,
        samples=samples,
        minimum_samples=minimum,
        features=features,
        describes_single_images=minimum is not None and samples < minimum,
        statements=(f"{content} of {features} numbers over {samples} images.", _NO_GUARANTEE),
    )
