"""Sources of the predictions in a cycle's window, compared with the usual ones of its environment."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

from lifelong_core.deploy import FittedQuantifier, LabeledLogits
from lifelong_core.deploy.adaptation.traffic import Traffic, describe_traffic
from lifelong_core.store import Store
from lifelong_core.store.log.identifiers import first_id_at, logged_at
from lifelong_monitor.cycle.window import CycleWindow

USUAL_AGE = timedelta(days=28)
"""What is usual is what came within this time before the window."""
MOST_BEFORE = 20_000
"""Predictions before the window whose senders are counted."""
WITHOUT = "(none)"
GONE = "(unknown)"


def load_traffic(
    store: Store,
    model_id: int,
    environment: str,
    taken: CycleWindow,
    fitted: FittedQuantifier | LabeledLogits,
) -> Traffic | None:
    """Load the traffic of a window; None if it is empty.

    Raises:
        UnavailableError: the database does not answer.
    """
    if not taken.first:
        return None
    first = UUID(taken.first) if taken.hours is None else first_id_at(taken.hours.since)
    since = logged_at(first).replace(minute=0, second=0, microsecond=0)
    names = {token.id: token.name for token in store.tokens.list()}

    def named(counts: Mapping[int | None, int]) -> dict[str, int]:
        found: dict[str, int] = {}
        for token_id, count in counts.items():
            name = WITHOUT if token_id is None else names.get(token_id, GONE)
            found[name] = found.get(name, 0) + count
        return found

    hours: dict[datetime, int] = {}
    if isinstance(fitted, FittedQuantifier):
        hours = store.traffic.hours(model_id, environment, fitted.digest, since=since - USUAL_AGE)
    return describe_traffic(
        named(store.traffic.senders(model_id, environment, first=first, log_position=taken.log_position)),
        named(store.traffic.senders_before(model_id, environment, first=first, limit=MOST_BEFORE)),
        hours,
        since=since,
    )
