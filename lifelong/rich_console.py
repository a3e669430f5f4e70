"""Consoles of Rich whose texts are made harmless, as `lifelong.printing` does.

Rich itself removes the bell, backspace, vertical tab, form feed and carriage return.
"""

from collections.abc import Iterable
from typing import Any

import rich.console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from lifelong.printing import harmless


class Console(rich.console.Console):
    """A console that writes styles, but no control characters of texts; brackets are no markup unless asked for."""

    def __init__(self, *, stderr: bool = False, markup: bool = False, **settings: Any) -> None:
        super().__init__(stderr=stderr, markup=markup, emoji=False, **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Segments of what is printed; those of Rich that move the cursor stay."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(harmless(segment.text), segment.style)
