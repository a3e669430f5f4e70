"""Reads cycles and heads of the demo from the admin API."""

import time
from datetime import datetime
from typing import Any

from lifelong.client import Client
from lifelong.demo.figures import AffectedSeen, CycleSeen
from lifelong.demo.installation import CYCLE_SECONDS, ENVIRONMENT, MODEL
from lifelong_core.deploy import PostProcessingHead
from lifelong_core.values.errors import UnavailableError

CYCLE_TIMEOUT_SECONDS = 6 * CYCLE_SECONDS


class Observer:
    """Reads cycles and heads through the admin API, as an operator would."""

    def __init__(self, api: Client) -> None:
        self._api = api

    def cycles(self) -> tuple[CycleSeen, ...]:
        """All cycles of the clinic, oldest first."""
        answer = self._api.get("/v1/admin/cycles", model=MODEL, environment=ENVIRONMENT, limit=100)
        seen = (CycleSeen.from_document(document) for document in answer["cycles"])
        return tuple(sorted(seen, key=lambda cycle: cycle.started_at))

    def wait_for_cycle(self, samples: int, *, swapped: bool = False) -> CycleSeen:
        """Wait for the first cycle whose window has at least so many predictions.

        Args:
            samples: smallest number of predictions in the window.
            swapped: whether the cycle must have published a head, too.

        Raises:
            UnavailableError: it does not come within a minute; the message holds the reason of the last cycle.
        """
        deadline = time.monotonic() + CYCLE_TIMEOUT_SECONDS
        seen: tuple[CycleSeen, ...] = ()
        while time.monotonic() < deadline:
            seen = self.cycles()
            for cycle in seen:
                published = cycle.published_version is not None
                if cycle.window_samples >= samples and (published or not swapped):
                    return cycle
            time.sleep(0.2)
        reason = seen[-1].reason if seen else "There was no cycle."
        raise UnavailableError(
            f"the monitor had not judged or swapped as expected after {CYCLE_TIMEOUT_SECONDS:.0f} s. {reason}",
            hint="See monitor.log.",
        )

    def heads(self) -> dict[int, PostProcessingHead]:
        """All heads of the demo's model by version."""
        return {item["version"]: PostProcessingHead.from_document(item["head"]) for item in self._heads()}

    def published_at(self, swap: CycleSeen) -> float:
        """Time at which a cycle's head was published, in seconds since the epoch."""
        moments = {item["version"]: item["created_at"] for item in self._heads()}
        return datetime.fromisoformat(moments[swap.published_version]).timestamp()

    def affected_by(self, swap: CycleSeen) -> AffectedSeen:
        """Number of decisions before a swap that its head would change; `lifelong cycles affected` lists them."""
        answer = self._api.get(f"/v1/admin/cycles/{swap.identity}/affected", limit=1)
        return AffectedSeen.from_document(answer["figures"])

    def _heads(self) -> list[dict[str, Any]]:
        return self._api.get(f"/v1/admin/models/{MODEL}/heads")["heads"]
