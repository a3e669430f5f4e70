"""Checks of the database."""

from collections.abc import Iterator
from datetime import timedelta

from lifelong_core.doctor.findings import Finding, Installation, failure, ok, warning
from lifelong_core.store.access.audit_chain import AnchorFile
from lifelong_core.store.health import CLOCK_HINT

_NEWEST_ENTRIES = 1000
"""Of the audit log so many are verified where not everything is read."""
_MOST = 5
"""Of several alike so many are named."""
_OVERDUE = timedelta(days=1)
"""The monitor deletes once an hour, so a day without deletion is a fault."""


def check_writable(installation: Installation) -> Iterator[Finding]:
    """A commit succeeds, and is as durable as the settings demand."""
    store, durability = installation.store, installation.settings.log_durability
    store.check_writable()
    for name in store.health.unsafe_settings():
        yield failure(
            f"the server runs with {name} = off: a power failure may damage the whole database.",
            f"Set {name} = on in postgresql.conf and reload the server.",
        )
    survives = "a power failure" if durability == "power" else "the death of any process"
    if store.database.is_postgresql:
        survives = "a power failure"
    yield ok(f"a commit succeeds; it survives {survives}.")


def check_clocks(installation: Installation) -> Iterator[Finding]:
    """The clocks of this machine, of the server and of all that write to the database agree."""
    for sentence in installation.store.health.clock_faults():
        yield warning(sentence, CLOCK_HINT)
    yield ok("they agree to the minute.")


def check_integrity(installation: Installation) -> Iterator[Finding]:
    """The database file is not damaged, and the log has its partitions."""
    health, today = installation.store.health, installation.now.date()
    if not installation.quick:
        for line in health.damage()[:_MOST]:
            yield failure(f"the database file is damaged: {line}.", "Restore it from a backup.")
    missing = health.days_without_partition(today, 2)
    if missing:
        yield failure(
            f"the log has no partition for {missing[0]}: retention has to delete that day row by row.",
            "Is `lifelong monitor` running? It makes them; `lifelong upgrade` does, too.",
        )
    elif missing := health.days_without_partition(today, 7):
        yield warning(
            f"the log has no partition for {missing[0]} yet.",
            "Is `lifelong monitor` running? It makes them a week ahead.",
        )
    elsewhere = [day for day in health.days_in_default_partition() if day >= today]
    if elsewhere:
        yield warning(
            f"predictions of {elsewhere[0]} are in the default partition.",
            "They are read as any others; a clock may be wrong on the machine that made them.",
        )
    if installation.store.database.is_postgresql:
        yield ok("the log has its partitions for the week ahead.")
    else:
        yield ok("the file was not read (--quick)." if installation.quick else "the file is whole.")


def check_audit_log(installation: Installation) -> Iterator[Finding]:
    """No entry was changed or removed, the newest one included."""
    audit, file = installation.store.audit, AnchorFile(installation.settings.audit_anchor_file)
    anchor = file.read()
    found = audit.verify(newest_only=_NEWEST_ENTRIES if installation.quick else None)
    for fault in found.faults[:_MOST]:
        yield failure(
            fault.text[:1].upper() + fault.text[1:],
            "The product never changes or deletes entries. `lifelong audit verify` shows all; compare with a backup.",
        )
    if anchor is not None and (fault := audit.fault_of(anchor)) is not None:
        yield failure(
            fault.text[:1].upper() + fault.text[1:],
            f"If an older backup was restored, remove {file.path}; else the log was changed: compare with a backup.",
        )
    yield ok(f"{found.entries} entries as they were written{'' if anchor is None else ', none cut off'}.")


def check_retention(installation: Installation) -> Iterator[Finding]:
    """Expired rows are deleted."""
    settings = installation.settings
    late = (installation.now - _OVERDUE).date()
    for environment in installation.store.retention.overdue(settings.retention_for, late)[:_MOST]:
        yield failure(
            f"{environment} holds predictions older than {settings.retention_for(environment)} days.",
            "Is `lifelong monitor` running? It deletes them.",
        )
    shorter = [
        days
        for days in (settings.retention_days, *settings.environment_retention_days.values())
        if days is not None and timedelta(days=days) < settings.window_age
    ]
    if shorter:
        yield warning(
            f"predictions are deleted after {min(shorter)} days, but a window may reach"
            f" {settings.window_age.days} days back.",
            "Windows are smaller than the settings say: lower LIFELONG_WINDOW_SECONDS or keep predictions longer.",
        )
    keeps = settings.retention_days is None and not settings.environment_retention_days
    yield ok("predictions are kept for ever." if keeps else "nothing older than it may be.")
