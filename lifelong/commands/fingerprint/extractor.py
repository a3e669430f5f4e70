"""`lifelong fingerprint extractor`: the reference that institutions share."""

import json
from pathlib import Path
from typing import Any, Unpack

import click

from lifelong.commands.common import CommandGroup, as_json, images_argument, output_option, replace_option
from lifelong.commands.fingerprint.files import expect_writable, read_extractor_file, write_file
from lifelong.commands.fingerprint.reading import (
    Reading,
    expect_features,
    limits_of,
    pretrained_option,
    reading_options,
    show_progress,
    weights_option,
)
from lifelong.commands.tables import wrap_text
from lifelong.printing import echo
from lifelong_core.develop.fingerprints.extractor import ExtractorReference


@click.group(cls=CommandGroup, short_help="Make and show the extractor reference that fingerprints share.")
def extractor() -> None:
    """The extractor reference: architecture, digest of the weights, preprocessing, and bin edges of each feature.

    Institutions that want to compare fingerprints use one reference file, and the file of the weights that it names.
    A reference that is made anew, even with equal weights, has other edges.
    """


@extractor.command("make")
@weights_option
@pretrained_option
@click.option("--architecture", default="resnet34", show_default=True, help="Name of a model of timm.")
@images_argument(required=True)
@click.option(
    "--edge", type=click.IntRange(8, 4096), default=256, show_default=True, help="Images are scaled to it."
)
@reading_options
@output_option(required=True)
@replace_option()
@as_json
def make_reference(
    weights: Path | None,
    architecture: str,
    images: tuple[Path, ...],
    edge: int,
    output: Path,
    *,
    pretrained: bool,
    replace: bool,
    as_json: bool,
    **reading: Unpack[Reading],
) -> None:
    """Make an extractor reference: bin edges are the 5 % and 95 % quantiles of each feature over reference images.

    IMAGES are folders, CSV, tar or zip files of images of many kinds.
    """
    expect_writable(output, replace=replace)
    expect_features()
    from lifelong_core.develop.features.backbone import load_backbone
    from lifelong_core.develop.features.reference import make_extractor_reference, thesis_preprocessing

    backbone = load_backbone(architecture, weights, pretrained=pretrained, device=reading["device"])
    with show_progress() as progress:
        reference = make_extractor_reference(
            images,
            backbone,
            names=[path.resolve().name for path in images],
            preprocessing=thesis_preprocessing(architecture, edge=edge),
            samples=reading["samples"],
            seed=reading["seed"],
            batch_size=reading["batch_size"],
            threads=reading["threads"],
            most_unreadable=reading["most_unreadable"],
            limits=limits_of(reading),
            progress=progress,
        )
    write_file(output, reference.to_bytes(), replace=replace)
    _print(output, reference, as_json=as_json)
    if not as_json:
        echo(
            wrap_text(
                f"Wrote {output}. Share it together with the weights: only fingerprints of the same reference can be"
                " compared."
            )
        )


@extractor.command("show")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@as_json
def show_reference(file: Path, *, as_json: bool) -> None:
    """Show what the extractor reference FILE says."""
    _print(file, read_extractor_file(file), as_json=as_json)


def _print(file: Path, reference: ExtractorReference, *, as_json: bool) -> None:
    document = reference.document
    values: dict[str, Any] = {
        "file": str(file),
        "digest": reference.digest,
        **document.to_document(),
        "features": reference.features,
    }
    if as_json:
        echo(json.dumps(values))
        return
    resize, crop = document.preprocessing.resize, document.preprocessing.centre_crop
    steps = [document.preprocessing.colour]
    if resize is not None:
        steps.append(f"scaled to {resize.width} x {resize.height} ({resize.mode}, {resize.interpolation})")
    if crop is not None:
        steps.append(f"cropped to {crop.width} x {crop.height}")
    for title, text in (
        ("digest", reference.digest),
        ("architecture", f"{document.architecture}, {reference.features} features"),
        ("weights", document.weights),
        ("preprocessing", ", ".join(steps)),
        ("reference images", f"{document.reference_images}: {', '.join(document.reference_names)}"),
    ):
        echo(f"{title:16}  {text}")
