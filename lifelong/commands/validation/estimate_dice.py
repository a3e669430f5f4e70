"""`lifelong estimate-dice`: the Dice of a segmentation model on maps without labels."""

import json
import re
from pathlib import Path
from typing import Any

import click

from lifelong.commands.common import as_json, level_option, output_option, seed_option
from lifelong.commands.results import write_text
from lifelong.commands.tables import print_rows, wrap_text
from lifelong.printing import echo
from lifelong.segmentation_files import read_cases
from lifelong_core.deploy.checks import as_class_names
from lifelong_core.deploy.performance.segmentation import ClassDice, DiceEstimate
from lifelong_core.deploy.performance.segmentation import estimate_dice as estimate
from lifelong_core.values.errors import InvalidInputError

folder = click.Path(exists=True, file_okay=False, path_type=Path)

METHODS = ("AC", "TS", "DoC", "ATC", "TS-ATC", "CS-TS", "CS-DoC", "CS-ATC", "CS-TS-ATC")
"""As in `DICE_METHODS`, which needs numpy."""


@click.command(name="estimate-dice", short_help="Estimate the Dice of a segmentation model without labels.")
@click.argument("calibration", type=folder)
@click.argument("maps", type=folder)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="CS-ATC",
    show_default=True,
    help="How confidence becomes Dice.",
)
@click.option("--background", type=int, default=0, show_default=True, help="Index of the background class.")
@click.option("--classes", help="Names of the classes in the order of the scores, separated by commas.")
@level_option()
@click.option("--replicates", type=int, default=200, show_default=True, help="Drawn calibration sets.")
@seed_option()
@output_option("Write the estimate here, as JSON.")
@as_json
def estimate_dice(calibration: Path, maps: Path, **options: Any) -> None:
    """Estimate the mean Dice of each class over the cases in MAPS, from the labelled cases in CALIBRATION.

    Both are folders with one npz file for each case: probabilities (C, ...) or logits (C, ...), any number of axes of
    pixels, and in CALIBRATION labels (...). MAPS may hold npy files with probabilities too. A table groups.csv (columns
    file, group) in a folder names the patient of each case.

    \b
    Example:
      lifelong estimate-dice validation/ this-month/ --classes background,lesion
    """
    labelled = read_cases(calibration, labelled=True, field="CALIBRATION")
    names = _class_names(options["classes"], labelled[0].classes)
    estimated = estimate(
        labelled,
        read_cases(maps, labelled=False, field="MAPS"),
        method=options["method"],
        background=options["background"],
        confidence=options["level"],
        replicates=options["replicates"],
        rng=options["seed"],
    )
    document = json.dumps(estimated.to_document(), indent=2)
    if options["output"] is not None:
        write_text(options["output"], document, field="--output")
    if options["as_json"]:
        echo(document)
    else:
        _print(estimated, names)


def _class_names(text: str | None, classes: int) -> list[str]:
    if text is None:
        return [f"class {k}" for k in range(classes)]
    names = as_class_names([name.strip() for name in text.split(",")])
    if len(names) != classes:
        raise InvalidInputError(f"expected {classes} names, got {len(names)}.", field="--classes")
    return list(names)


def _print(estimated: DiceEstimate, names: list[str]) -> None:
    """Print the estimate as a table, its warnings and assumptions."""
    echo(
        f"Dice by {estimated.method}: {estimated.cases} maps, {estimated.calibration_cases} calibration cases,"
        f" {100 * estimated.confidence:g} % intervals"
    )
    rows = [_row(name, one) for name, one in zip(names, estimated.classes, strict=True)]
    if len(names) > 2:
        mean = estimated.foreground
        rows.append(
            dict.fromkeys(rows[0])
            | {"class": "mean without background", "dice": _number(mean.value)}
            | {"interval": _interval(mean.low, mean.high)}
        )
    print_rows(rows, as_json=False, empty="")
    for warning in estimated.warnings:
        text = _named(warning.text, names)
        echo(wrap_text(text, indent="  ", first="Caution: "))
    for text in estimated.assumptions:
        echo(wrap_text(text, indent="  ", first="Assumes: "))


def _row(name: str, dice: ClassDice) -> dict[str, Any]:
    return {
        "class": name,
        "dice": _number(dice.value),
        "interval": _interval(dice.low, dice.high),
        "maps_with_it": dice.cases,
        "maps_without": dice.unpredicted_cases,
        "dice_in_calibration": _number(dice.calibration_dice),
        "calibration_cases": dice.calibration_cases,
    }


def _number(value: float | None) -> str | None:
    return None if value is None or value != value else f"{value:.3f}"


def _interval(low: float | None, high: float | None) -> str | None:
    first, last = _number(low), _number(high)
    return None if first is None or last is None else f"{first} to {last}"


def _named(text: str, names: list[str]) -> str:
    """The text with the names of the classes."""
    return re.sub(r"\bclass (\d+)\b", lambda found: names[int(found[1])], text, flags=re.IGNORECASE)
