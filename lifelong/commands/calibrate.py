"""`lifelong calibrate`: a calibration set from a folder of labelled images, through the path that serves."""

from pathlib import Path

import click

BATCH = 32
IMAGE_SUFFIXES = {".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp"}


def labelled_images(folder: Path, class_names: list[str]) -> tuple[list[Path], list[int]]:
    """Image files in one subfolder per class, and their class indices.

    Raises:
        InvalidInputError: a class has no folder or no image.
    """
    from lifelong_core.errors import InvalidInputError

    files: list[Path] = []
    labels: list[int] = []
    for index, name in enumerate(class_names):
        members = sorted(path for path in (folder / name).glob("*") if path.suffix.lower() in IMAGE_SUFFIXES)
        if not members:
            raise InvalidInputError(
                f"{folder / name} holds no image.",
                field="folder",
                mend=f"Make one subfolder per class, named {', '.join(class_names)}.",
            )
        files += members
        labels += [index] * len(members)
    return files, labels


@click.command()
@click.argument("model")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--url", default="http://127.0.0.1:3000", show_default=True, help="The running service.")
@click.option("--token", envvar="LIFELONG_TOKEN", required=True, help="Token with the scope operate.")
def calibrate(model: str, folder: Path, url: str, token: str) -> None:
    """Calibrate MODEL with the labelled images in FOLDER/<class name>/ and publish its first head.

    Use images that the model was not trained on, 50 or more of each class. The running service
    computes the logits, so that calibration and predictions share one preprocessing.
    """
    from rich.progress import track

    from lifelong.api import Api
    from lifelong_core.deploy import LabeledLogits

    with Api(url, token) as api:
        document = api.get(f"/v1/admin/models/{model}")
        files, labels = labelled_images(folder, document["classes"])
        logits: list[list[float]] = []
        for start in track(range(0, len(files), BATCH), description="Computing logits", transient=True):
            logits += api.logits_of(model, [path.read_bytes() for path in files[start : start + BATCH]])
        answer = api.add_calibration_set(model, LabeledLogits(logits, labels).to_bytes())
    click.echo(f"Fitted head {answer['head_version']} on {len(labels)} images; {model} is served now.")
