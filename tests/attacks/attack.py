"""An attack and its goals: limits that must hold meanwhile."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.attacks.target import Target


@dataclass(frozen=True)
class Scale:
    """How much of an attack is carried out.

    Attributes:
        seconds: for which a stream of requests goes on.
        clients: that send it at once.
    """

    seconds: float
    clients: int


FULL = Scale(seconds=60, clients=6)
QUICK = Scale(seconds=6, clients=4)


@dataclass
class Outcome:
    """Figures of one attack, and every goal that was missed."""

    figures: dict[str, float] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)

    def expect(self, name: str, value: float, *, below: float) -> None:
        """Note a figure with its limit."""
        self.figures[name] = round(value, 4)
        if not value < below:
            self.missed.append(f"{name} is {value:.4g}, expected less than {below:g}")


Attack: TypeAlias = Callable[[Target, Scale], Outcome]
