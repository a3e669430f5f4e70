"""An attack and its goals: limits that must hold during the attack."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from tests import tools
from tests.attacks.target import Target


@dataclass(frozen=True)
class Scale:
    """Size of an attack.

    Attributes:
        seconds: duration of a stream of requests.
        clients: number of simultaneous clients.
    """

    seconds: float
    clients: int


FULL = Scale(seconds=60, clients=6)
QUICK = Scale(seconds=4, clients=4)


@dataclass
class Outcome:
    """Figures of one attack, and its missed goals."""

    figures: dict[str, float] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)

    def expect(self, name: str, value: float, *, below: float) -> None:
        """Record a figure with its limit."""
        self.figures[name] = round(value, 4)
        if not value < below:
            self.missed.append(f"{name} is {value:.4g}, expected less than {below:g}")

    def expect_in_time(self, name: str, seconds: float, *, below: float) -> None:
        """Record a duration with its deadline, which holds on a machine without other work."""
        self.expect(name, seconds, below=below if tools.has_deadlines() else float("inf"))


Attack: TypeAlias = Callable[[Target, Scale], Outcome]
