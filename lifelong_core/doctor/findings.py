"""Findings of a check, and their levels."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Literal, TypeAlias

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Store


class Level(IntEnum):
    """Severity of a finding; the highest one is the exit status."""

    OK = 0
    WARNING = 1
    FAILURE = 2

    @property
    def word(self) -> Literal["ok", "warning", "failure"]:
        """In lower case."""
        return _WORDS[self]


_WORDS: dict[Level, Literal["ok", "warning", "failure"]] = {
    Level.OK: "ok",
    Level.WARNING: "warning",
    Level.FAILURE: "failure",
}


@dataclass(frozen=True)
class Finding:
    """One finding, and the hint how to fix it."""

    level: Level
    message: str
    hint: str = ""


def ok(message: str) -> Finding:
    """Make a finding without a problem."""
    return Finding(Level.OK, message)


def warning(message: str, hint: str) -> Finding:
    """Make a finding that an operator should look at."""
    return Finding(Level.WARNING, message, hint)


def failure(message: str, hint: str) -> Finding:
    """Make a finding of something that does not work."""
    return Finding(Level.FAILURE, message, hint)


@dataclass(frozen=True)
class Installation:
    """The installation that is checked.

    Attributes:
        settings: of this process.
        store: opened.
        now: the present time.
        quick: leave out what reads everything.
    """

    settings: Settings
    store: Store
    now: datetime
    quick: bool


Check: TypeAlias = Callable[[Installation], Iterable[Finding]]


@dataclass(frozen=True)
class Result:
    """The findings of one check, at least one."""

    name: str
    findings: tuple[Finding, ...]

    @property
    def level(self) -> Level:
        """The highest level of the findings."""
        return max(finding.level for finding in self.findings)
