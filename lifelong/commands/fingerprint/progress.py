"""The progress bar of fingerprinting, on stderr."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from lifelong.rich_console import Console

TITLES = {"list": "Finding images", "read": "Reading images", "fisher": "Drawing gradients"}


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
