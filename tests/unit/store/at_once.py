"""Threads that do the same at the same moment, each with a store of its own."""

import threading
from collections.abc import Callable
from typing import Any

from lifelong_core.store import Store
from lifelong_core.values.errors import ConflictError


def at_once(store: Store, artifacts_url: str, *steps: Callable[[Store], Any]) -> list[Any]:
    """What each step gave, or the conflict that it ended in; any other error fails the test."""
    url = store.database.url.render_as_string(hide_password=False)
    barrier = threading.Barrier(len(steps))
    outcomes: list[Any] = [None] * len(steps)

    def run(place: int, step: Callable[[Store], Any]) -> None:
        with Store.open(url, artifacts_url) as own:
            barrier.wait()
            try:
                outcomes[place] = step(own)
            except ConflictError as error:
                outcomes[place] = error
            except BaseException as error:  # noqa: BLE001 - shown by the assertion
                outcomes[place] = error

    threads = [threading.Thread(target=run, args=(place, step)) for place, step in enumerate(steps)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    unexpected = [
        one for one in outcomes if isinstance(one, BaseException) and not isinstance(one, ConflictError)
    ]
    assert unexpected == []
    return outcomes
