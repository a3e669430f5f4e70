"""All methods under the names of the published results, and `distance`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from lifelong_core.develop.fingerprints.distances.binned_kld import BinnedKLD, JensenShannon
from lifelong_core.develop.fingerprints.distances.method import Method
from lifelong_core.develop.fingerprints.distances.pairwise import MaximumMeanDiscrepancy, Naive
from lifelong_core.develop.fingerprints.distances.vectors import FED, P2L, VDNA, EarthMovers, Frechet, Manual
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.validation_errors import suggest

SMALL, LARGE = 100, 1000
"""Numbers of bins of the small and of the large bKLD fingerprints."""

JEFFREYS = 0.5
"""Pseudo-count of each bin by Jeffreys' prior."""

METHODS: Mapping[str, Method[Any]] = MappingProxyType(
    {
        "bKLD(small,target)": BinnedKLD("target", SMALL),
        "bKLD(large,unweighted)": BinnedKLD("uniform", LARGE),
        "bKLD(large,source)": BinnedKLD("source", LARGE),
        "bKLD(small,smoothed)": BinnedKLD("target", SMALL, JEFFREYS),
        "JSD": JensenShannon(),
        "VDNA": VDNA(),
        "P2L": P2L(),
        "FID": Frechet(),
        "FED": FED(),
        "Manual": Manual(),
        "naive": Naive(),
        "MMD": MaximumMeanDiscrepancy(),
        "EMD": EarthMovers(),
    }
)
"""By name; of the methods for one kind of fingerprint, the default comes first."""


def find_method(name: str) -> Method[Any]:
    """The method of this name.

    Raises:
        InvalidInputError: there is none.
    """
    if name not in METHODS:
        raise InvalidInputError(
            f"there is no method {name[:80]!r}.",
            field="method",
            hint=suggest(name, list(METHODS)) or f"Known methods: {', '.join(METHODS)}.",
        )
    return METHODS[name]


def default_method(fingerprint: Fingerprint) -> Method[Any]:
    """The default method for the kind and the bins of a fingerprint.

    Histograms: bKLD(small,target) of 100 bins, bKLD(large,unweighted) of 1,000, else bKLD weighted by the target.
    """
    if fingerprint.kind == BinnedKLD.fingerprint_type.kind:
        bins = getattr(fingerprint, "bins", None)
        named = {SMALL: "bKLD(small,target)", LARGE: "bKLD(large,unweighted)"}
        return METHODS[named[bins]] if bins in named else BinnedKLD("target")
    if fingerprint.kind == EarthMovers.fingerprint_type.kind:
        return METHODS["EMD"]
    return next(method for method in METHODS.values() if method.fingerprint_type.kind == fingerprint.kind)


def distance(source: Fingerprint, target: Fingerprint, method: str | Method[Any] | None = None) -> float:
    """Distance of a source task to a target task; the lower, the closer.

    Args:
        source: fingerprint of the task to transfer from.
        target: fingerprint of the task to transfer to.
        method: a name in `METHODS`, or a method; None: the default for this kind of fingerprint.

    Raises:
        InvalidInputError: no such method, or fingerprints of another kind, or of different extractors or sizes.
    """
    if isinstance(method, str):
        method = find_method(method)
    return (method or default_method(target)).distance(source, target)
