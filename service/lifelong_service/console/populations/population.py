"""The page of one population: its state, its prevalence over time, its swaps and its cycles."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.charts.figures import Tone
from lifelong_core.charts.markup import Markup
from lifelong_core.charts.state_timeline import Span, StateTimeline
from lifelong_core.charts.time_series import Mark, Sample, Series, TimeSeries
from lifelong_core.entities.populations import JudgedWindow, PopulationAnswer
from lifelong_core.operations.populations import ShowPopulation
from lifelong_core.store.performance.statements import describe_metric
from lifelong_service.console.pages import page
from lifelong_service.console.populations.fleet import NEED_WORDS, time_since
from lifelong_service.console.route import ConsoleRoute
from lifelong_service.guard.access import access, carry_out

PATH = "/console/populations/{model}/{environment}"
MOST_CYCLES = 200
"""Newest cycles in the charts."""
MOST_LISTED = 25
"""Of these in the table."""
MOST_CLASSES = 5
"""Classes in the chart of the prevalence: those that moved most."""
TONES: dict[str, Tone] = {
    "keep": "calm",
    "swap": "accent",
    "refuse": "bad",
    "would swap": "warn",
    "proposes a swap": "warn",
}

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get(PATH)
@access(ShowPopulation.operation.scope)
def show_population(request: Request, model: str, environment: str) -> Response:
    """Show what a population needs, its head in words, and what its cycles saw."""
    found = carry_out(request, ShowPopulation(model=model, environment=environment, limit=MOST_CYCLES))
    at = datetime.now(UTC)
    judged = [window for window in found.windows if window.prevalence is not None]
    return page(
        request,
        "population",
        found=found,
        one=found.summary,
        in_force=time_since(found.summary.head_since, at),
        need=NEED_WORDS[found.summary.need],
        tones=TONES,
        charts=[_prevalence(found, judged), _outcomes(found.windows, at)] if judged else [],
        cycles=found.windows[: -MOST_LISTED - 1 : -1],
        swaps=found.swaps[::-1],
        describe_metric=describe_metric,
        path=PATH.format(model=model, environment=environment),
        months=[f"{month:%Y-%m}" for month in _months(at)],
    )


def _months(at: datetime) -> list[datetime]:
    """The present month and the two before it."""
    first = at.replace(day=1)
    before = first - timedelta(days=1)
    return [first, before, before.replace(day=1) - timedelta(days=1)]


def _prevalence(found: PopulationAnswer, judged: Sequence[JudgedWindow]) -> Markup:
    """The estimates with their bands, what the heads assumed as steps, swaps and changes."""
    chosen = _moved_most(judged, len(found.class_names))
    names = found.class_names
    swapped_at = {swap.cycle: swap.at for swap in found.swaps}
    series = [
        series
        for colour, k in enumerate(chosen)
        for series in (
            Series(f"{names[k]}, estimated", (tuple(_estimates(judged, k)),), colour=colour),
            Series(
                f"{names[k]}, assumed", (tuple(_assumed(judged, swapped_at, k)),), kind="step", colour=colour
            ),
        )
    ]
    first, last = judged[0], judged[-1]
    told = "; ".join(
        f"{names[k]} from {first.prevalence[0][k]:.2f} to {last.prevalence[0][k]:.2f}, assumed"
        f" {last.assumed_prevalence[k]:.2f}"
        for k in chosen
        if first.prevalence is not None and last.prevalence is not None
    )
    return TimeSeries(
        _title(names, chosen),
        f"Estimated prevalence over {len(judged)} cycles: {told}.",
        tuple(series),
        marks=tuple(_marks(found)),
        within=(0.0, 1.0),
    ).draw()


def _title(names: Sequence[str], chosen: Sequence[int]) -> str:
    """The caption of the chart.

    Examples:
        >>> _title(["benign", "malignant"], [1]), _title(["a", "b", "c"], [0, 1, 2]), _title(list("abcdefg"), [0, 1])
        ('Prevalence of malignant', 'Prevalence', 'Prevalence of the 2 classes that moved most')
    """
    if len(names) == 2:
        return f"Prevalence of {names[1]}"
    is_all = len(chosen) == len(names)
    return "Prevalence" if is_all else f"Prevalence of the {len(chosen)} classes that moved most"


def _moved_most(judged: Sequence[JudgedWindow], classes: int) -> list[int]:
    """The classes to draw; of two classes the second, because the other is its mirror image."""
    if classes == 2:
        return [1]

    def reach(k: int) -> float:
        shares = [one.prevalence[0][k] for one in judged if one.prevalence is not None]
        return max(*shares, *(one.assumed_prevalence[k] for one in judged)) - min(shares)

    return sorted(sorted(range(classes), key=reach, reverse=True)[:MOST_CLASSES])


def _estimates(judged: Sequence[JudgedWindow], k: int) -> Iterator[Sample]:
    for one in judged:
        value, low, high = (ends[k] for ends in one.prevalence or ())
        title = f"{one.judged_at:%Y-%m-%d %H:%M}: {value:.3f} ({low:.3f} to {high:.3f})"
        yield Sample(one.judged_at, value, low, high, title)


def _assumed(judged: Sequence[JudgedWindow], swapped_at: Mapping[UUID, datetime], k: int) -> Iterator[Sample]:
    """The shares that the heads assumed; they change when the head of a swap comes into force."""
    for one, following in pairwise(judged):
        yield Sample(one.judged_at, one.assumed_prevalence[k])
        if one.cycle in swapped_at:
            at = min(swapped_at[one.cycle], following.judged_at)
            yield Sample(at, following.assumed_prevalence[k])
    last = judged[-1]
    yield Sample(max(last.judged_at, swapped_at.get(last.cycle, last.judged_at)), last.assumed_prevalence[k])


def _marks(found: PopulationAnswer) -> Iterator[Mark]:
    for swap in found.swaps:
        yield Mark(
            swap.at, "swap of the head", f"{swap.head_version}", f"head {swap.head_version}", tone="accent"
        )
    changes = {window.changed_at for window in found.windows if window.changed_at is not None}
    for at in sorted(changes):
        yield Mark(at, "change of the prevalence", title=f"change at {at:%Y-%m-%d %H:%M}")


def _outcomes(windows: Sequence[JudgedWindow], at: datetime) -> Markup:
    """The outcomes of the cycles over time."""
    ends = [*(one.judged_at for one in windows[1:]), max(at, windows[-1].judged_at + timedelta(minutes=1))]
    spans = tuple(
        Span(
            one.judged_at,
            end,
            one.effect,
            TONES.get(one.effect, "calm"),
            f"{one.judged_at:%Y-%m-%d %H:%M}: {one.effect}. {one.reason}",
        )
        for one, end in zip(windows, ends, strict=True)
    )
    counts = {effect: sum(one.effect == effect for one in windows) for effect in TONES}
    told = ", ".join(f"{count} {effect}" for effect, count in counts.items() if count)
    return StateTimeline(
        "Outcomes of the cycles", f"{told}.", (("cycles", spans),), windows[0].judged_at, ends[-1]
    ).draw()
