"""Sources of the predictions that a cycle judges, compared with the usual ones of their environment."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from lifelong_core.deploy import ChangePoint, FittedQuantifier, LabeledLogits
from lifelong_core.deploy.adaptation.traffic import Traffic, describe_traffic, in_other_days
from lifelong_core.store import Model, Store
from lifelong_core.store.log.identifiers import first_id_at, logged_at
from lifelong_monitor.cycle.window import CycleWindow

USUAL_AGE = timedelta(days=28)
"""The usual rate is that within this time before the window."""
MOST_BEFORE = 20_000
"""Earlier predictions whose senders are counted, with this version of the model and then with others."""
WITHOUT = "(no token)"
GONE = "(unknown)"
_DAY = timedelta(days=1)


def load_traffic(
    store: Store,
    model: Model,
    environment: str,
    taken: CycleWindow,
    fitted: FittedQuantifier | LabeledLogits,
    changes: Sequence[ChangePoint],
) -> Traffic | None:
    """Load the traffic of the part of a window that the estimate rests on: since its last change.

    Returns:
        None if the window is empty.

    Raises:
        UnavailableError: the database does not answer.
    """
    if not taken.first:
        return None
    if changes and changes[-1].changed_at is not None:
        first = first_id_at(changes[-1].changed_at)
    else:
        first = UUID(taken.first) if taken.hours is None else first_id_at(taken.hours.since)
    since = logged_at(first).replace(minute=0, second=0, microsecond=0)
    newest = datetime.fromtimestamp(taken.times[-1], UTC)
    yesterday = newest.replace(hour=0, minute=0, second=0, microsecond=0) - _DAY
    tokens = store.tokens.list()
    names = {token.id: token.name for token in tokens}

    def named(counts: Mapping[tuple[int | None, date], int]) -> Counter[tuple[str, date]]:
        found: Counter[tuple[str, date]] = Counter()
        for (token_id, day), count in counts.items():
            found[WITHOUT if token_id is None else names.get(token_id, GONE), day] += count
        return found

    window = named(store.traffic.senders(model.id, environment, first=first, log_position=taken.log_position))
    before: Counter[tuple[str, date]] = Counter()
    # A sender that is known to an earlier version is known to this one.
    versions = [version for version in store.models.list() if version.name == model.name]
    for version in sorted(versions, key=lambda version: (version.id == model.id, version.id), reverse=True):
        if left := MOST_BEFORE - before.total():
            earlier = store.traffic.senders_before(
                version.id, environment, first=first_id_at(yesterday), limit=left
            )
            before += named(earlier)
    days = before | window  # the larger count of each: the window may hold a part of what is before
    known = {
        name: in_other_days({day: count for (sender, day), count in days.items() if sender == name})
        for name in dict.fromkeys(sender for sender, _ in window)
    }
    hours: dict[datetime, int] = {}
    if isinstance(fitted, FittedQuantifier):
        hours = store.traffic.hours(model.id, environment, fitted.digest, since=since - USUAL_AGE)
    return describe_traffic(
        _by_sender(window),
        _by_sender(before),
        hours,
        since=since,
        known=known,
        bound={
            version.name for version in tokens if version.environments and environment in version.environments
        },
    )


def _by_sender(counts: Mapping[tuple[str, date], int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for (name, _), count in counts.items():
        found[name] += count
    return found
