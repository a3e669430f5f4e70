"""The guarantee of a differentially private fingerprint."""

from pydantic import Field

from lifelong_core.documents import Frozen


class Privacy(Frozen):
    """(epsilon, delta)-differential privacy towards adding or removing all images of one patient.

    Dwork and Roth (2014), definition 2.4. delta = 0 is pure differential privacy.
    """

    epsilon: float = Field(gt=0)
    """of the whole fingerprint, all its histograms together"""
    delta: float = Field(default=0.0, ge=0, lt=1)
    images_per_patient: int = Field(default=1, ge=1)
    """largest number of images of one patient among the sampled ones; the guarantee holds for no more"""
