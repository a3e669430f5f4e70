"""The circumstances of a cycle: the heads that served, the last swap, and the estimates of other environments."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from lifelong_core.deploy import AdaptationContext, AdaptationReport, PrevalenceEstimate
from lifelong_core.deploy.adaptation.context import LabelledEvidence
from lifelong_core.entities.cycles import Cycle
from lifelong_core.entities.heads import Activation
from lifelong_core.entities.registry import Model
from lifelong_core.store import Store
from lifelong_core.store.heads.rows import DamagedHeadError
from lifelong_core.values.arrays import Floats
from lifelong_monitor.cycle.reports import readable_report_of


@dataclass(frozen=True)
class HeadService:
    """A head that served an environment from some time on."""

    since: datetime
    head_version: int


def list_head_services(own: Sequence[Activation], default: Sequence[Activation]) -> tuple[HeadService, ...]:
    """List the heads that served an environment, oldest first; neighbours differ.

    Args:
        own: activations of the environment, oldest first.
        default: activations of the model's default head, which serves while the environment has none of its own.

    Examples:
        >>> from datetime import UTC
        >>> def at(hour, version, environment="a", uses_default_head=False):
        ...     moment = datetime(2026, 1, 1, hour, tzinfo=UTC)
        ...     return Activation(
        ...         model_id=1,
        ...         environment=environment,
        ...         sequence=1,
        ...         head_version=version,
        ...         activated_at=moment,
        ...         activated_by="ann",
        ...         reason="publish",
        ...         uses_default_head=uses_default_head,
        ...     )
        >>> found = list_head_services([at(9, 2), at(12, 1, uses_default_head=True)], [at(8, 1, None), at(10, 3, None)])
        >>> [(service.since.hour, service.head_version) for service in found]
        [(8, 1), (9, 2), (12, 3)]
    """
    services: list[HeadService] = []
    own_version: int | None = None
    default_version: int | None = None
    for since, activation in sorted([*_by_time(default), *_by_time(own)], key=lambda one: one[0]):
        if activation.environment is None:
            default_version = activation.head_version
        else:
            own_version = None if activation.uses_default_head else activation.head_version
        version = default_version if own_version is None else own_version
        if version is not None and (not services or services[-1].head_version != version):
            services.append(HeadService(since, version))
    return tuple(services)


def _by_time(activations: Sequence[Activation]) -> Iterator[tuple[datetime, Activation]]:
    """Sort by time; a time that is before an earlier one is raised to it (clocks differ)."""
    latest: datetime | None = None
    for one in activations:
        latest = one.activated_at if latest is None else max(latest, one.activated_at)
        yield latest, one


def load_context(
    store: Store,
    model: Model,
    environment: str,
    *,
    served: Sequence[HeadService],
    pinned: bool,
    at: datetime,
    others_since: datetime | None,
    labelled: LabelledEvidence | None = None,
) -> AdaptationContext:
    """Build the context of a cycle.

    Args:
        store: holds the heads and the other environments' cycles.
        model: of the population.
        environment: of the population.
        served: the heads that served it; the last one serves now.
        pinned: whether a person holds the head.
        at: the time of the cycle.
        others_since: the other environments count with sound cycles due since then; None: they do not count.
        labelled: labels of the window's predictions; None: they do not count.
    """
    rejected: Sequence[Cycle] = ()
    if served:
        since, version = served[-1].since, served[-1].head_version
        rejected = store.cycles.list_rejected(model.id, environment, head_version=version, since=since)
    if len(served) < 2:
        seconds, previous = None, None
    else:
        seconds = max(0.0, (at - served[-1].since).total_seconds())
        previous = _assumed_by(store, model, served[-2].head_version)
    return AdaptationContext(
        seconds_since_swap=seconds,
        pinned=pinned,
        previous_prevalence=previous,
        others=() if others_since is None else _others(store, model, environment, others_since),
        rejected=tuple(_estimates_of(rejected)),
        labelled=labelled,
    )


def _estimates_of(cycles: Sequence[Cycle]) -> Iterator[PrevalenceEstimate]:
    """Prevalence for which each cycle fitted its head."""
    for cycle in cycles:
        report = readable_report_of(cycle)
        used = None if report is None else report.pooled or report.prevalence
        if used is not None:
            yield used


def _assumed_by(store: Store, model: Model, version: int) -> Floats | None:
    """The prevalence that a head assumes; None: it is damaged. Then a swap back to it is not recognised as one."""
    try:
        return store.heads.get(model.reference, version).head.assumed_prevalence
    except DamagedHeadError:
        return None


def _others(store: Store, model: Model, environment: str, since: datetime) -> tuple[PrevalenceEstimate, ...]:
    """The estimates of the other environments whose newest cycle was sound, in the order of their names."""
    cycles = [store.cycles.last(model.id, name) for name in store.environments.list() if name != environment]
    reports = [readable_report_of(cycle) for cycle in cycles if cycle is not None and cycle.due_at >= since]
    return tuple(
        report.prevalence
        for report in reports
        if report is not None and report.prevalence is not None and _is_sound(report)
    )


def _is_sound(report: AdaptationReport) -> bool:
    """Whether other environments may use its estimate: only the prevalence changed, and the window was large enough."""
    return (
        report.outcome != "refuse"
        and (report.assumption_test is None or not report.assumption_test.rejected)
        and all(reason.code != "window_too_small" for reason in report.reasons)
    )
