"""Runs all checks one after the other; a failure of one does not stop the others."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime

from lifelong_core.configuration.settings import Settings
from lifelong_core.doctor import access, content, database, machine, monitoring, populations, processes
from lifelong_core.doctor.findings import Check, Finding, Installation, Level, Result, failure, ok
from lifelong_core.runtime.redaction import redact
from lifelong_core.store import Store
from lifelong_core.values.errors import LifelongError

CHECKS: dict[str, Check] = {
    "writing": database.check_writable,
    "clocks": database.check_clocks,
    "integrity": database.check_integrity,
    "audit log": database.check_audit_log,
    "retention": database.check_retention,
    "artifacts": content.check_artifacts,
    "calibration sets": content.check_calibration_sets,
    "models": content.check_models,
    "heads": content.check_heads,
    "recommendations": content.check_recommendations,
    "knowledge base": content.check_knowledge,
    "group key": content.check_group_key,
    "file modes": machine.check_file_modes,
    "cores": machine.check_cores,
    "execution providers": machine.check_providers,
    "spool": machine.check_spool,
    "disk space": machine.check_disks,
    "workers": processes.check_workers,
    "monitor": monitoring.check_monitor,
    "jobs": processes.check_jobs,
    "notifications": processes.check_notifications,
    "environments": populations.check_environments,
    "label error rates": populations.check_label_error_rates,
    "tokens": access.check_tokens,
    "summaries": populations.check_summaries,
}

SERVED = (
    "writing",
    "clocks",
    "audit log",
    "retention",
    "calibration sets",
    "models",
    "heads",
    "recommendations",
    "group key",
    "cores",
    "spool",
    "disk space",
    "workers",
    "monitor",
    "jobs",
    "notifications",
    "environments",
    "label error rates",
    "tokens",
)
"""The checks that read little, so that a serving process may make them."""


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
        yield from examine_store(installation, tuple(CHECKS))


def examine_store(installation: Installation, names: Iterable[str]) -> Iterator[Result]:
    """Run the named checks of an opened store, one after the other, as the results are asked for."""
    for name in names:
        yield Result(name, _findings(CHECKS[name], installation))


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
