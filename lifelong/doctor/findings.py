"""What a check finds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from lifelong_core.settings import Settings
    from lifelong_core.store import Store


class Level(IntEnum):
    """How bad it is; the worst one is the exit status."""

    OK = 0
    WARNING = 1
    FAILURE = 2

    @property
    def word(self) -> str:
        """In lower case."""
        return self.name.lower()


@dataclass(frozen=True)
class Finding:
    """One thing that was found, and what to do about it."""

    level: Level
    message: str
    hint: str = ""


def ok(message: str) -> Finding:
    """All is well."""
    return Finding(Level.OK, message)


def warning(message: str, hint: str) -> Finding:
    """Somebody should look."""
    return Finding(Level.WARNING, message, hint)


def failure(message: str, hint: str) -> Finding:
    """Something is broken, or promises are."""
    return Finding(Level.FAILURE, message, hint)


@dataclass(frozen=True)
class Installation:
    """What is looked at.

    Attributes:
        settings: of this process.
        store: opened.
        now: the present time.
        quick: leave out what reads everything.
    """

    settings: "Settings"
    store: "Store"
    now: datetime
    quick: bool


Check: TypeAlias = Callable[[Installation], Iterable[Finding]]


@dataclass(frozen=True)
class Result:
    """What one check found, at least one thing."""

    name: str
    findings: tuple[Finding, ...]

    @property
    def level(self) -> Level:
        """The worst."""
        return max(finding.level for finding in self.findings)
