"""Options of commands that read images, and their progress bar on stderr."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import click

from lifelong.commands.common import seed_option
from lifelong.rich_console import Console
from lifelong_core.values.errors import ConfigurationError

if TYPE_CHECKING:
    from lifelong_core.develop.features.sources.limits import Limits


Command = Callable[..., None]

_FILE = click.Path(dir_okay=False, path_type=Path)

weights_option: Callable[[Command], Command] = click.option(
    "--weights",
    type=_FILE,
    help="File of the weights: safetensors, or a state dictionary that torch saved. Nothing in it is executed.",
)
pretrained_option: Callable[[Command], Command] = click.option(
    "--pretrained", is_flag=True, help="Take the weights from timm's hub instead; needs a network."
)

_READING: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "--samples",
        {
            "type": click.IntRange(2, 1_000_000),
            "default": 10_000,
            "help": "Images that are drawn at random; all if there are fewer.",
        },
    ),
    (
        "--batch-size",
        {"type": click.IntRange(1, 4096), "default": 32, "help": "Images that are computed at once."},
    ),
    ("--device", {"help": "cpu or cuda; without it, a GPU if there is one."}),
    ("--threads", {"type": click.IntRange(1, 1024), "help": "Threads of the CPU; without it, one per core."}),
    (
        "--most-unreadable",
        {
            "type": click.FloatRange(0, 1, max_open=True),
            "default": 0.05,
            "help": "Largest share of the drawn images that may be unreadable.",
        },
    ),
    (
        "--maximum-pixels",
        {
            "type": click.IntRange(1, 2_000_000_000),
            "default": 50_000_000,
            "help": "Larger images count as unreadable.",
        },
    ),
)

TITLES = {"list": "Finding images", "read": "Reading images", "fisher": "Drawing gradients"}


class Reading(TypedDict):
    """Values of the options of `reading_options`."""

    samples: int
    seed: int
    batch_size: int
    device: str | None
    threads: int | None
    most_unreadable: float
    maximum_pixels: int


def reading_options(command: Command) -> Command:
    """Add the options of `Reading`."""
    for name, settings in reversed(_READING):
        command = click.option(name, show_default="default" in settings, **settings)(command)
    return seed_option("Seed of the draw.")(command)


def limits_of(reading: Reading) -> "Limits":
    """The limits of images and archives."""
    from lifelong_core.develop.features.sources.limits import Limits

    return Limits(pixels=reading["maximum_pixels"])


def expect_features() -> None:
    """Make sure that torch and timm are installed.

    Raises:
        ConfigurationError: one of them is missing.
    """
    from importlib.util import find_spec

    missing = [name for name in ("torch", "torchvision", "timm", "pydicom") if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"not installed: {', '.join(missing)}.",
            hint='Install the extra, in the clone of lifelong: pip install -c constraints.txt -e ".[develop]".',
        )


@contextmanager
def show_progress() -> Generator[Callable[[str, int, int | None], None]]:
    """Give a function that takes the stage, the images so far, and their final number; drawn on a terminal only."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        tasks = {stage: bars.add_task(title, total=None, visible=False) for stage, title in TITLES.items()}

        def show(stage: str, done: int, total: int | None) -> None:
            bars.update(tasks[stage], completed=done, total=total, visible=True)

        yield show
