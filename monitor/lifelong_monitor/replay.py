"""Judge the window of a past cycle again."""

from uuid import UUID

from lifelong_core.deploy import AdaptationReport, adapt
from lifelong_core.errors import NotFoundError
from lifelong_core.store import Store
from lifelong_monitor.evidence import gather_again
from lifelong_monitor.quantifiers import FittedQuantifiers
from lifelong_monitor.reports import inputs_of, report_of
from lifelong_monitor.schedule import EPOCH


def replay(store: Store, cycle_id: UUID) -> AdaptationReport:
    """Judge the window of a past cycle again from what is stored; equal to the report that the cycle recorded.

    A cycle that an older version of the product recorded is judged as that version was told, by the rules of this one.

    Raises:
        NotFoundError: there is no such cycle, or what it looked at is not stored any more.
        InvalidInputError: its report is in a form that this version cannot read.
    """
    cycle = store.cycles.get(cycle_id)
    registry = store.registry()
    if registry is None or cycle.model_id not in registry.models:
        raise NotFoundError("the model of this cycle is gone.", field="cycle")
    model = registry.models[cycle.model_id]
    window = store.predictions.window(
        model.id, cycle.environment, limit=cycle.window_samples, since=EPOCH, horizon=cycle.horizon
    )
    if len(window.ids) != cycle.window_samples:
        raise NotFoundError(
            f"the log holds only {len(window.ids)} of the {cycle.window_samples} predictions of this cycle.",
            field="cycle",
            mend="Predictions older than the retention time are deleted; newer cycles can be replayed.",
        )
    recorded, inputs = report_of(cycle), inputs_of(cycle)
    gathered = gather_again(store, window, cycle)
    report = adapt(
        FittedQuantifiers().get(store, model, inputs.calibration_set, inputs.quantifier),
        window.logits,
        store.heads.get(model.reference, cycle.head_version).head,
        recorded.policy,
        new_buckets=gathered.buckets,
        evidence=gathered.evidence,
        context=recorded.context,
        groups=window.groups,
        method=inputs.quantifier,
        rng=recorded.seed,
    )
    if report.window_digest != recorded.window_digest:
        raise NotFoundError(
            "the log does not hold the predictions that this cycle looked at any more.",
            field="cycle",
            mend="Some were deleted since; newer cycles can be replayed.",
        )
    return report
