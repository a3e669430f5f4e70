"""`lifelong fingerprint make` and `make-private`: from images to a fingerprint, and to a private copy of it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

from lifelong.commands.common import (
    Name,
    as_json,
    format_count,
    images_argument,
    output_option,
    replace_option,
)
from lifelong.commands.fingerprint.files import (
    expect_writable,
    read_extractor_file,
    read_fingerprint_file,
    write_file,
)
from lifelong.commands.fingerprint.reading import (
    Reading,
    expect_features,
    limits_of,
    pretrained_option,
    reading_options,
    show_progress,
    weights_option,
)
from lifelong.commands.fingerprint.show import sharing_warnings
from lifelong.printing import echo
from lifelong_core.develop.fingerprints.distances.registry import find_method
from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.fingerprints.fisher import KeywordFingerprint
from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint
from lifelong_core.develop.fingerprints.private_histogram import make_private as add_noise
from lifelong_core.values.errors import InvalidInputError

if TYPE_CHECKING:
    from lifelong_core.develop.features.result import TaskFingerprints


DEFAULT_METHOD = "bKLD(small,target)"
MOST_NAMED = 5


@click.command(short_help="Make the fingerprint of a folder of images.")
@images_argument(required=False)
@click.option(
    "--extractor",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File of the shared extractor reference.",
)
@weights_option
@pretrained_option
@click.option(
    "--method",
    default=DEFAULT_METHOD,
    show_default=True,
    help="Fingerprinting method; it decides the kind of the fingerprint. VDNA and P2L share that of bKLD; "
    "others: FID, FED, naive, MMD, EMD, Manual.",
)
@click.option("--bins", type=click.IntRange(2, 10_000), help="Bins of each feature, if not the method's.")
@click.option("--unlabelled", is_flag=True, help="Sub-folders are no classes, but patients for example.")
@click.option("--keyword", "keywords", multiple=True, help="Of the task's description; can be repeated.")
@click.option(
    "--card",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the task card (JSON): facts of the task, for the knowledge base.",
)
@click.option("--name", type=Name(), help="Name of the task on its card.")
@click.option("--classes", type=click.IntRange(2), help="Number of classes, where images have no labels.")
@click.option("--modality", help="On the card.")
@reading_options
@output_option(required=True)
@replace_option()
@as_json
def make(
    images: tuple[Path, ...],
    extractor: Path | None,
    weights: Path | None,
    method: str,
    bins: int | None,
    keywords: tuple[str, ...],
    card: Path | None,
    name: str | None,
    classes: int | None,
    modality: str | None,
    output: Path,
    *,
    pretrained: bool,
    unlabelled: bool,
    replace: bool,
    as_json: bool,
    **reading: Unpack[Reading],
) -> None:
    """Make the fingerprint of a task.

    \b
    IMAGES are one or more of
      FOLDER    images and DICOM files, recursively; sub-folders are classes
      FILE.csv  with the columns path and, for classes, label
      FILE.tar  also .tar.gz; shards of webdataset, or folders
      FILE.zip  sub-folders are classes

    Archives are not unpacked to the disk. A random sample of the images is read; the fingerprint holds counts, no
    image. `lifelong fingerprint show` says what it discloses.

    --method Manual makes a fingerprint of --keyword alone, without images.
    """
    for file in filter(None, (output, card)):
        expect_writable(file, replace=replace)
    if (card is None) != (name is None):
        raise InvalidInputError("--card and --name belong together.", field="--card" if card else "--name")
    chosen = find_method(method)
    kind = chosen.fingerprint_type.kind
    if kind == "keywords":
        _make_keywords(output, images, keywords, replace=replace, as_json=as_json)
        return
    if not images or extractor is None:
        raise InvalidInputError(
            f"the method {method} needs images and --extractor.", field="--extractor" if images else "IMAGES"
        )
    if (weights is None) != pretrained:
        raise InvalidInputError("expected either --weights or --pretrained.", field="--weights")
    expect_features()
    from lifelong_core.develop.features.task import fingerprint_task

    with show_progress() as progress:
        made = fingerprint_task(
            images,
            extractor,
            weights,
            kinds=(kind,),
            bins=bins or getattr(chosen, "bins", None) or 100,
            labelled=not unlabelled,
            samples=reading["samples"],
            seed=reading["seed"],
            batch_size=reading["batch_size"],
            device=reading["device"],
            threads=reading["threads"],
            most_unreadable=reading["most_unreadable"],
            limits=limits_of(reading),
            progress=progress,
        )
    if card is not None and name is not None:
        text = made.facts.card(name, classes=classes, keywords=keywords, modality=modality).to_json()
        write_file(card, f"{text}\n".encode(), replace=replace)
    write_file(output, made.fingerprint.to_bytes(), replace=replace)
    if as_json:
        echo(json.dumps(_document(output, made.fingerprint, made)))
    else:
        _print(output, card, made)


def _make_keywords(
    output: Path, images: tuple[Path, ...], keywords: tuple[str, ...], *, replace: bool, as_json: bool
) -> None:
    if images or not keywords:
        raise InvalidInputError(
            "the method Manual needs keywords and no images.", field="--keyword" if not keywords else "IMAGES"
        )
    fingerprint = KeywordFingerprint(keywords)
    write_file(output, fingerprint.to_bytes(), replace=replace)
    if as_json:
        echo(json.dumps(_document(output, fingerprint, None)))
    else:
        echo(f"Wrote {output}: {', '.join(fingerprint.keywords)}.")


def _document(output: Path, fingerprint: Fingerprint, made: "TaskFingerprints | None") -> dict[str, Any]:
    return {
        "file": str(output),
        "kind": fingerprint.kind,
        "digest": fingerprint.digest,
        "bytes": output.stat().st_size,
        "report": None if made is None else made.report.to_document(),
        "facts": None if made is None else made.facts.to_document(),
    }


def _print(output: Path, card: Path | None, made: "TaskFingerprints") -> None:
    report, facts = made.report, made.facts
    echo(
        f"Read {report.read} of {format_count(report.images, 'image')} in {report.seconds:.1f} s "
        f"({report.architecture}, {report.device})."
    )
    if report.passed_over:
        echo(f"Passed over {format_count(report.passed_over, 'file')} that are no images.")
    if report.unreadable:
        echo(f"{format_count(report.unreadable, 'image')} could not be read:")
        for example in report.unreadable_examples[:MOST_NAMED]:
            echo(f"  {example.name}: {example.problem}")
        if report.unreadable > MOST_NAMED:
            echo(f"  and {report.unreadable - MOST_NAMED} more")
    if facts.class_sizes is not None:
        echo(f"Classes: {len(facts.class_sizes)}, imbalance {facts.imbalance:.3g}.")
    if card is not None:
        echo(f"Wrote {card}.")
    echo(f"Wrote {output}: {made.fingerprint.kind}, {output.stat().st_size} bytes.")
    for warning in sharing_warnings(made.fingerprint):
        echo(f"Warning: {warning}", err=True)


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
