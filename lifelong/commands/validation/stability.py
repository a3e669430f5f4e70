"""`lifelong stability`: whether several classifiers find the same places of images."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from lifelong.commands.common import as_json, level_option
from lifelong.commands.results import write_text
from lifelong.commands.tables import print_rows, wrap_text
from lifelong.instance_maps import InstanceMaps, read_image_labels, read_maps
from lifelong.printing import echo
from lifelong_core.develop.localization.classifier_stability import (
    ClassifierStability,
    ScoreOverImages,
    classifier_stability,
)
from lifelong_core.develop.localization.stability import SCORE_NAMES
from lifelong_core.promotion.page import stability_html
from lifelong_core.values.errors import InvalidInputError

file = click.Path(dir_okay=False, path_type=Path)
OF_PAIRS = ("adjusted_positive_jaccard", "adjusted_jaccard", "spearman")
"""Scores that the table of pairs shows."""


@click.command(short_help="Compare the places that several classifiers find in images.")
@click.argument("classifiers", nargs=-1, required=True, metavar="[NAME=]A [NAME=]B ...")
@click.option(
    "--labels",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Which images are positive: npy (images,) of 0 and 1, or CSV with the columns file and label.",
)
@click.option(
    "--threshold", type=float, default=0.5, show_default=True, help="Least score of a positive instance."
)
@level_option()
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write an HTML report.")
@as_json
def stability(classifiers: Sequence[str], labels: Path | None, **options: Any) -> None:
    """Compare the instance maps of classifiers A, B, ... for the same images, pair by pair.

    A map holds the probability of each instance (patch, pixel) of an image, or whether it is positive. Each of A, B,
    ... is an npy file (images, height, width), an npz file with such an array as maps, or a folder with one npy or npz
    file for each image, with equal names in all folders.

    Scores are those of the promotion report (Romanova 2020): counted in each image, then the mean over the positive
    images. Images in which a score is undefined are left out of its mean, and counted. Without --labels all images
    count.

    \b
    Examples:
      lifelong stability seed-1.npy seed-2.npy seed-3.npy --labels positive.npy --html page.html
      lifelong stability old=maps-old/ new=maps-new/ --labels labels.csv --json
    """
    paths = _paths(classifiers)
    maps = {name: read_maps(path, field=name) for name, path in paths.items()}
    names = _image_names(maps)
    result = classifier_stability(
        {name: one.maps for name, one in maps.items()},
        None if labels is None else read_image_labels(labels, names, field="--labels"),
        names=names,
        threshold=options["threshold"],
        level=options["level"],
    )
    if options["html"] is not None:
        write_text(options["html"], stability_html(result), field="--html")
    if options["as_json"]:
        echo(result.to_json())
    else:
        _print(result)


def _paths(texts: Sequence[str]) -> dict[str, Path]:
    """Files and folders by the name of the classifier: as given, else that of the file, else the path."""
    given = [_named_path(text) for text in texts]
    stems = [path.stem for _, path in given]
    paths: dict[str, Path] = {}
    for (name, path), stem in zip(given, stems, strict=True):
        own = name or (stem if stems.count(stem) == 1 else str(path.with_suffix("")))
        if own in paths:
            raise click.UsageError(f"two classifiers have the name {own}; give names: NAME=FILE.")
        paths[own] = path
    if len(paths) < 2:
        raise click.UsageError("give the maps of at least two classifiers.")
    return paths


def _named_path(text: str) -> tuple[str | None, Path]:
    """The name, None without one, and the file or folder of an argument."""
    if Path(text).exists():
        return None, Path(text)
    name, _, path = text.partition("=")
    if not path or not Path(path).exists():
        raise click.UsageError(f"there is no file or folder {path or text!r}.")
    return name.strip() or None, Path(path)


def _image_names(maps: dict[str, InstanceMaps]) -> tuple[str, ...] | None:
    """Names of the images; those of all folders are equal."""
    named = {name: one.names for name, one in maps.items() if one.names is not None}
    if not named:
        return None
    first, names = next(iter(named.items()))
    for other, others in named.items():
        differ = sorted(set(names) ^ set(others))
        if differ:
            where = first if differ[0] in names else other
            raise InvalidInputError(
                f"only {where} has a map of {differ[0]}.",
                field=other,
                hint="All folders hold a file of the same name for each image.",
            )
    return names


def _print(result: ClassifierStability) -> None:
    """Print the mean of all pairs and each pair as tables."""
    images = (
        f"{result.positive_images} of {result.images} images count"
        if result.is_labelled
        else (f"all {result.images} images count, as no --labels say which are positive")
    )
    echo(
        f"Stability of {len(result.classifiers)} classifiers, {len(result.pairs)} pairs; {images};"
        f" {100 * result.level:g} % intervals\n"
    )
    rows = [{"score": SCORE_NAMES[one.score], **_cells(one)} for one in result.scores]
    print_rows(rows, as_json=False, empty="")
    if len(result.pairs) > 1:
        echo()
        pairs = [
            {
                "first": pair.first,
                "second": pair.second,
                "score": SCORE_NAMES[one.score],
                **_cells(one),
            }
            for pair in result.pairs
            for one in pair.scores
            if one.score in OF_PAIRS
        ]
        print_rows(pairs, as_json=False, empty="")
    echo(
        wrap_text(
            "Classifiers that agree may be wrong together: look at the images.",
            indent="  ",
            first="Caution: ",
        )
    )


def _cells(score: ScoreOverImages) -> dict[str, str | int | None]:
    return {
        "mean": None if score.mean is None else f"{score.mean:.3f}",
        "interval": None
        if score.low is None or score.high is None
        else f"{score.low:.3f} to {score.high:.3f}",
        "images": score.defined,
        "undefined": score.undefined,
    }
