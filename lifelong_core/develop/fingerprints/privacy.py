"""The guarantee of a differentially private fingerprint."""

from pydantic import Field

from lifelong_core.values.documents import FrozenDocument


class Privacy(FrozenDocument):
    """(epsilon, delta)-differential privacy (Dwork and Roth, 2014, definition 2.4) of a whole fingerprint.

    Two sets of sampled images are neighbours if they differ in the images of one patient only: up to
    `images_per_patient` are removed, and up to as many are added. Removing, adding or replacing a patient in the data
    set changes a sample of `lifelong_core.develop.features.sampling` in this way, because that takes the images with
    the smallest hashes of their names; with another sampling, one patient may change which images are taken at all.
    """

    epsilon: float = Field(gt=0)
    """of all histograms together, not of each"""
    delta: float = Field(default=0.0, ge=0, lt=1)
    """0: pure differential privacy"""
    images_per_patient: int = Field(default=1, ge=1)
    """largest number of images of one patient; the guarantee does not cover patients with more"""
