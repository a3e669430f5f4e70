"""Runs all checks one after the other; a failure of one does not stop the others."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

from lifelong.doctor import access, content, database, machine, monitoring, populations, processes
from lifelong.doctor.findings import Check, Finding, Installation, Level, Result, failure, ok
from lifelong_core.errors import LifelongError
from lifelong_core.redaction import redact
from lifelong_core.settings import Settings
from lifelong_core.store import Store

CHECKS: dict[str, Check] = {
    "writing": database.writable,
    "integrity": database.integrity,
    "audit log": database.audit_log,
    "retention": database.retention,
    "artifacts": content.artifacts,
    "calibration sets": content.calibration_sets,
    "models": content.models,
    "heads": content.heads,
    "recommendations": content.recommendations,
    "group key": content.group_key,
    "file modes": machine.file_modes,
    "execution providers": machine.execution_providers,
    "spool": machine.spool,
    "disk space": machine.disks,
    "workers": processes.workers,
    "monitor": monitoring.monitor,
    "jobs": processes.jobs,
    "environments": populations.environments,
    "tokens": access.tokens,
    "summaries": populations.summaries,
}


def examine(*, quick: bool) -> Iterator[Result]:
    """Run all checks; without settings or database, the others are skipped."""
    try:
        settings = Settings.load()
    except LifelongError as error:
        yield Result("settings", (_failed(error),))
        return
    yield Result("settings", (ok("they can be read."),))
    try:
        store = Store.from_settings(settings)
    except LifelongError as error:
        yield Result("database", (_failed(error),))
        return
    with closing(store):
        url = store.database.url
        revision = store.health.schema()
        yield Result("database", (ok(f"{redact(url.render_as_string())} has the schema {revision}."),))
        installation = Installation(settings, store, datetime.now(UTC), quick)
        for name, check in CHECKS.items():
            yield Result(name, _findings(check, installation))


def _findings(check: Check, installation: Installation) -> tuple[Finding, ...]:
    found: list[Finding] = []
    try:
        found += check(installation)
    except LifelongError as error:
        found.append(_failed(error))
    except Exception as error:  # noqa: BLE001 - whatever it met, the other checks are made, and this one is shown
        found.append(failure(f"the check could not be made: {redact(repr(error))}.", "Tell the developers."))
    # That all is well is worth saying only where it is.
    bad = tuple(finding for finding in found if finding.level is not Level.OK)
    return bad or tuple(found)


def _failed(error: LifelongError) -> Finding:
    where = f"{error.field}: " if error.field else ""
    return failure(f"{where}{error.message}", error.hint or "")
