"""`lifelong calibrate`: a calibration set from a folder of labelled images."""

from pathlib import Path

import click

FEW_CASES = 50


@click.command(short_help="Calibrate a model with a folder of labelled images.")
@click.argument("model")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--url", help="The running service; by default where LIFELONG_HOST and LIFELONG_PORT say.")
@click.option(
    "--token", envvar="LIFELONG_TOKEN", show_envvar=True, required=True, help="Token with the scope operate."
)
def calibrate(model: str, folder: Path, url: str | None, token: str) -> None:
    """Calibrate MODEL with the labelled images in FOLDER/<class name>/ and publish its first head.

    Use images that the model was not trained on, 50 or more of each class. The running service
    computes the logits, so that calibration and predictions share one preprocessing.
    """
    from rich.console import Console
    from rich.progress import Progress

    from lifelong.api import Api
    from lifelong.calibration import calibrate_with_images, labelled_images
    from lifelong_core.settings import Settings

    if url is None:
        settings = Settings.load()
        url = f"http://{settings.host}:{settings.port}"
    elif "://" not in url:
        url = f"http://{url}"
    with Api(url, token) as api, Progress(console=Console(stderr=True), transient=True) as progress:
        class_names = api.get(f"/v1/admin/models/{model}")["classes"]
        files, labels = labelled_images(folder, class_names)
        bar = progress.add_task("Computing logits", total=len(files))
        answer = calibrate_with_images(
            api, model, files, labels, on_images=lambda count: progress.advance(bar, count)
        )
    for index, name in enumerate(class_names):
        if labels.count(index) < FEW_CASES:
            click.secho(
                f"Only {labels.count(index)} images of {name}: estimates will be unsure.", fg="yellow"
            )
    click.echo(f"Fitted head {answer['head_version']} of {answer['model']} on {len(labels)} images.")
    click.echo(answer["serving"])
