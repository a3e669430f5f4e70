"""Noise of differential privacy, by OpenDP."""

import math
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lifelong_core.develop.fingerprints.privacy import Privacy
from lifelong_core.values.errors import ConfigurationError, InvalidInputError

MOST_EPSILON = 100.0
"""of approximate differential privacy"""


def add_noise(counts: NDArray[np.int64], privacy: Privacy) -> NDArray[np.int64]:
    """Counts of m histograms, (m, cells), with noise of the same scale for each; they can become negative.

    One image counts in one cell of each histogram. Neighbours (see `Privacy`) therefore differ by counts a - b of each
    histogram with a, b >= 0 that sum to at most k = `images_per_patient` each:

    - by at most 2 k m in the L1 norm. delta = 0: discrete Laplace noise of scale 2 k m / epsilon (Ghosh et al., 2009;
      proof: Dwork and Roth, 2014, theorem 3.6);
    - by at most k sqrt(2 m) in the L2 norm, as ||a - b||^2 <= ||a||^2 + ||b||^2 <= 2 k^2. delta > 0: discrete Gaussian
      noise (proof: Canonne, Kamath and Steinke, 2020, theorem 4), its scale from their conversion of concentrated to
      (epsilon, delta)-differential privacy.

    So the composition over the histograms is part of the sensitivity: by basic composition each histogram alone has
    epsilon / m.

    OpenDP counts both constructors as contributions, which have not passed its whole vetting. The sampler is exact,
    and takes its random bits from the operating system: noise that a seed reproduces can be subtracted.

    Raises:
        InvalidInputError: delta > 0 and epsilon above `MOST_EPSILON`.
        ConfigurationError: OpenDP is not installed.
    """
    opendp = _load_opendp()
    histograms, images = len(counts), privacy.images_per_patient
    if privacy.delta:
        scale = gaussian_scale(histograms, privacy)
        measurement = _gaussian(scale, opendp)
    else:
        measurement = opendp.m.make_laplace(
            _vectors(opendp), opendp.l1_distance(T="i64"), scale=2 * images * histograms / privacy.epsilon
        )
    return np.array(measurement(counts.ravel().tolist()), dtype=np.int64).reshape(counts.shape)


def gaussian_scale(histograms: int, privacy: Privacy) -> float:
    """The smallest scale of discrete Gaussian noise that gives this privacy to so many histograms.

    Raises:
        InvalidInputError: epsilon is above `MOST_EPSILON`.
        ConfigurationError: OpenDP is not installed.
    """
    if privacy.epsilon > MOST_EPSILON:
        raise InvalidInputError(
            f"expected at most {MOST_EPSILON:g}, got {privacy.epsilon:g}.",
            field="epsilon",
            hint="A larger one protects nothing; share the exact fingerprint then.",
        )
    opendp = _load_opendp()
    # Bun and Steinke (2016), proposition 1.3, in closed form: enough, and at most a third too much.
    logarithm = -math.log(privacy.delta)
    concentrated = (math.sqrt(privacy.epsilon + logarithm) - math.sqrt(logarithm)) ** 2
    enough = 1 / math.sqrt(2 * concentrated)
    ratio = opendp.binary_search_param(
        partial(_bounded_gaussian, delta=privacy.delta, opendp=opendp),
        d_in=1.0,
        d_out=(privacy.epsilon, privacy.delta),
        bounds=(enough / 2, enough),
    )
    # The next number up, so that rounding cannot understate the noise.
    return math.nextafter(ratio * privacy.images_per_patient * math.sqrt(2 * histograms), math.inf)


def _load_opendp() -> Any:
    """The library, which publishes no types; its import takes a second or two."""
    try:
        opendp = import_module("opendp.prelude")
    except ImportError as error:
        raise ConfigurationError(
            "differentially private fingerprints need OpenDP.",
            hint='Install OpenDP in the clone of lifelong: pip install -c constraints.txt -e ".[privacy]".',
        ) from error
    opendp.enable_features("contrib")  # both constructors are outside its fully vetted part
    return opendp


def _gaussian(scale: float, opendp: Any) -> Any:
    return opendp.m.make_gaussian(_vectors(opendp), opendp.l2_distance(T="f64"), scale)


def _bounded_gaussian(scale: float, *, delta: float, opendp: Any) -> Any:
    """The measurement with a map from the L2 distance of neighbours to epsilon and delta."""
    return opendp.c.make_fix_delta(opendp.c.make_zCDP_to_approxDP(_gaussian(scale, opendp)), delta)


def _vectors(opendp: Any) -> Any:
    return opendp.vector_domain(opendp.atom_domain(T="i64"))
