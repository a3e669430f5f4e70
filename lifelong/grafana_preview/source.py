"""Queries of a Prometheus over its HTTP API."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import httpx

from lifelong_core.runtime.addresses import is_this_machine
from lifelong_core.values.errors import InvalidInputError, UnavailableError

TIMEOUT_SECONDS = 30.0
SCRAPE_SECONDS = 15.0
"""Longest usual time between two scrapes: windows of rates hold at least four."""


@dataclass(frozen=True)
class Line:
    """One series: its labels, and values by Unix time in order of time; a single one for an instant query."""

    labels: Mapping[str, str]
    samples: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Prometheus:
    """A Prometheus, and the time that is shown.

    Attributes:
        url: its address.
        since: beginning of the time range.
        until: end of the time range, and the time of instant queries.
    """

    url: str
    since: datetime
    until: datetime

    def step(self, count: int) -> float:
        """Seconds between two of so many samples of the time range; at least one."""
        return max(round((self.until - self.since).total_seconds() / count), 1.0)

    def rate_window(self, count: int) -> str:
        """The window of a rate in a query with so many samples, as PromQL writes it."""
        return f"{max(4 * SCRAPE_SECONDS, self.step(count) + SCRAPE_SECONDS):.0f}s"

    def instant(self, expression: str) -> list[Line]:
        """The values of an expression at the end of the time range.

        Raises:
            InvalidInputError: Prometheus does not understand it.
            UnavailableError: Prometheus does not answer.
        """
        found = self._get("query", query=expression, time=self.until.timestamp())
        return [Line(one["metric"], _samples([one["value"]])) for one in found["result"]]

    def ranged(self, expression: str, count: int) -> list[Line]:
        """The series of an expression over the time range, with so many samples; errors as of `instant`."""
        step = timedelta(seconds=self.step(count))
        found = self._get(
            "query_range",
            query=expression,
            start=self.since.timestamp(),
            end=self.until.timestamp(),
            step=step.total_seconds(),
        )
        return [Line(one["metric"], _samples(one["values"])) for one in found["result"]]

    def label_values(self, label: str, series: str) -> list[str]:
        """The values of a label over the series of a selector; errors as of `instant`."""
        parameters = {"start": self.since.timestamp(), "end": self.until.timestamp()}
        return self._get(f"label/{label}/values", **{"match[]": series}, **parameters)

    def _get(self, path: str, **parameters: Any) -> Any:
        try:
            address = f"{self.url.rstrip('/')}/api/v1/{path}"
            host = httpx.URL(address).host
            # The proxy of the environment does not know this machine.
            answer = httpx.get(
                address, params=parameters, timeout=TIMEOUT_SECONDS, trust_env=not is_this_machine(host)
            )
            document = answer.json()
            failure = document.get("error", "")
            data = document.get("data")
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise InvalidInputError(
                f"{self.url!r} is no address.",
                field="--prometheus",
                hint="Give one such as http://127.0.0.1:9090.",
            ) from error
        except (httpx.TransportError, ValueError, AttributeError) as error:
            raise UnavailableError(
                f"no Prometheus answers at {self.url}: {error or type(error).__name__}.",
                field="--prometheus",
                hint="Give the address that Prometheus shows in a browser.",
            ) from error
        if failure or data is None:
            raise InvalidInputError(f"Prometheus refuses {parameters}: {failure or answer.status_code}.")
        return data


def _samples(values: list[list[Any]]) -> tuple[tuple[float, float], ...]:
    pairs = ((float(at), float(value)) for at, value in values)
    return tuple((at, value) for at, value in pairs if math.isfinite(value))
