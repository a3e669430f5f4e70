"""Progress bars on stderr, so that stdout holds the result alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from lifelong.rich_console import Console

Advance = Callable[..., None]


class Steps:
    """A list of steps with a bar each; a context manager."""

    def __init__(self) -> None:
        self._progress = Progress(
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()

    @contextmanager
    def step(self, title: str, total: int = 1) -> Iterator[Advance]:
        """One step; the block calls what it gets with the amount done (1 by default)."""
        task = self._progress.add_task(title, total=total)

        def advance(amount: int = 1) -> None:
            self._progress.advance(task, amount)

        yield advance
        self._progress.update(task, completed=total)
