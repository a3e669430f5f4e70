"""`lifelong fingerprint make-private`: a differentially private copy of a fingerprint."""

from pathlib import Path

import click

from lifelong.commands.common import output_option, replace_option
from lifelong.commands.fingerprint.files import read_extractor_file, read_fingerprint_file, write_file
from lifelong.printing import echo
from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint
from lifelong_core.develop.fingerprints.private_histogram import make_private as add_noise
from lifelong_core.values.errors import InvalidInputError


@click.command(short_help="Add noise to a fingerprint, so that it is differentially private.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--extractor",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="File of the extractor reference.",
)
@click.option(
    "--epsilon",
    type=click.FloatRange(0, min_open=True),
    required=True,
    help="Of the whole fingerprint; the smaller, the more private and the less precise.",
)
@click.option(
    "--delta",
    type=click.FloatRange(0, 1, max_open=True),
    default=1e-6,
    show_default=True,
    help="0, or well below 1 / number of patients.",
)
@click.option(
    "--images-per-patient",
    type=click.IntRange(1),
    required=True,
    help="Largest number of images of one patient among the sampled ones.",
)
@output_option(required=True)
@replace_option()
def make_private(
    file: Path,
    extractor: Path,
    epsilon: float,
    delta: float,
    images_per_patient: int,
    output: Path,
    *,
    replace: bool,
) -> None:
    """Write a differentially private copy of the fingerprint FILE, which must be of histograms.

    Each further private copy of the same images adds its epsilon and delta, so share one only. With 512 features,
    epsilon 1 and one image per patient, the noise of each count has a standard deviation of 145 images: fewer than
    some thousand images leave little but noise.
    """
    fingerprint = read_fingerprint_file(file)
    if not isinstance(fingerprint, HistogramFingerprint):
        raise InvalidInputError(
            f"expected a fingerprint of kind histogram, got {fingerprint.kind}.", field="FILE"
        )
    private = add_noise(
        fingerprint,
        read_extractor_file(extractor),
        epsilon=epsilon,
        delta=delta,
        images_per_patient=images_per_patient,
    )
    write_file(output, private.to_bytes(), replace=replace)
    echo(f"Wrote {output}: {output.stat().st_size} bytes, epsilon {epsilon:g}, delta {delta:g}.")
