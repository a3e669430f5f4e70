"""Judge the window of a past cycle again."""

from dataclasses import replace
from uuid import UUID

from lifelong_core.deploy import AdaptationReport, adapt
from lifelong_core.store import Store
from lifelong_core.values.errors import NotFoundError
from lifelong_monitor.cycle.new_samples import recollect_new_samples
from lifelong_monitor.cycle.quantifiers import FittedQuantifiers
from lifelong_monitor.cycle.reports import inputs_of, report_of
from lifelong_monitor.cycle.wanted_estimates import judge_acceptance, keys_of
from lifelong_monitor.cycle.window import judge_window, reload_window


def replay(store: Store, cycle_id: UUID) -> AdaptationReport:
    """Judge the window of a past cycle again from what is stored; equal to the report that the cycle recorded.

    Where the window was made of summaries, these are made again from the rows: they are equal in all counts, and all
    figures to rounding (1e-9).

    Raises:
        NotFoundError: there is no such cycle, or what it looked at is not stored any more.
        InvalidInputError: its report is in a form that this version cannot read.
    """
    cycle = store.cycles.get(cycle_id)
    registry = store.registry()
    if cycle.model_id not in registry.models:
        raise NotFoundError("the model of this cycle is gone.", field="cycle")
    model = registry.models[cycle.model_id]
    recorded, inputs = report_of(cycle), inputs_of(cycle)
    names = registry.tasks[model.task_id].class_names
    fitted = FittedQuantifiers().get(store, model, inputs.calibration_set, inputs.quantifier)
    taken = reload_window(store, cycle, inputs, fitted, classes=len(names))
    gathered = recollect_new_samples(store, cycle, classes=len(names), first=taken.rows)
    report = adapt(
        fitted,
        taken.data,
        store.heads.get(model.reference, cycle.head_version).head,
        recorded.policy,
        new_buckets=gathered.buckets,
        evidence=gathered.evidence,
        context=recorded.context,
        groups=taken.groups,
        times=taken.times,
        method=inputs.quantifier,
        rng=recorded.seed,
        performance_metrics=keys_of(inputs.wanted),
    )
    if taken.hours is not None:
        # Compared already, by counts and to rounding: no digest of sums survives another order of adding.
        report = replace(report, window_digest=recorded.window_digest)
    if report.window_digest != recorded.window_digest:
        raise NotFoundError(
            "the log does not hold the predictions that this cycle looked at any more.",
            field="cycle",
            hint="Some were deleted since; newer cycles can be replayed.",
        )
    return judge_acceptance(judge_window(report, taken), inputs.wanted, names)
