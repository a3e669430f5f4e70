"""The doctor: what a serving process can say about the installation by itself."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

from lifelong_core.entities.access import Scope
from lifelong_core.entities.entity import Entity
from lifelong_core.operations.operation import Call, Context, operation

if TYPE_CHECKING:
    from lifelong_core.doctor.findings import Result

Status: TypeAlias = Literal["ok", "warning", "failure"]


@dataclass(frozen=True, kw_only=True)
class FindingAnswer(Entity):
    """One finding of a check."""

    status: Status
    message: str
    hint: str | None
    """how to mend it; null: nothing is wrong"""


@dataclass(frozen=True, kw_only=True)
class CheckAnswer(Entity):
    """The findings of one check, at least one."""

    check: str
    status: Status
    """the worst of its findings"""
    findings: list[FindingAnswer]


@dataclass(frozen=True, kw_only=True)
class Examination(Entity):
    """The checks of an installation."""

    status: Status
    """the worst of all checks"""
    checks: list[CheckAnswer]
    left_out: list[str]
    """checks for which there was no time"""


class Examine(Call[Examination]):
    """Nothing is chosen."""


@operation("GET", "/v1/admin/doctor", scope=Scope.READ, example=Examine())
def examine(context: Context, call: Examine) -> Examination:  # noqa: ARG001
    """Check the installation, as seen from the process that answers: its store, settings, spool and disks.

    Checks that read much (artifacts, the whole database, window summaries) are left to `lifelong doctor` on the
    machine. No check starts after half of the time limit of a request; `left_out` names those that did not start.
    """
    from lifelong_core.doctor.examination import SERVED, examine_store  # loads the design loop
    from lifelong_core.doctor.findings import Installation, Level

    ends_at = time.monotonic() + context.patience_seconds
    installation = Installation(context.settings, context.store, datetime.now(UTC), quick=True)
    results = examine_store(installation, SERVED)
    made: list[Result] = []
    while len(made) < len(SERVED) and time.monotonic() < ends_at:
        made.append(next(results))
    worst = max((result.level for result in made), default=Level.OK)
    return Examination(
        status=worst.word,
        checks=[check_answer(result) for result in made],
        left_out=list(SERVED[len(made) :]),
    )


def check_answer(result: "Result") -> CheckAnswer:
    """The findings of a check as people see them."""
    findings = [
        FindingAnswer(status=one.level.word, message=one.message, hint=one.hint or None)
        for one in result.findings
    ]
    return CheckAnswer(check=result.name, status=result.level.word, findings=findings)
