"""Checks of environments and populations: names in the settings, window summaries, rows that cannot be judged."""

from collections.abc import Iterator
from datetime import timedelta

from lifelong_core.deploy import FittedQuantifier, quantifier
from lifelong_core.doctor.findings import Finding, Installation, failure, ok, warning
from lifelong_core.store import Model
from lifelong_core.store.health import SummaryState
from lifelong_core.store.log.identifiers import EPOCH
from lifelong_core.values.errors import ConfigurationError, UnidentifiableError

_MISSED_CYCLES = 2
_MOST = 5
_NEARLY_FULL = 0.8
"""Share of the environments that there may be."""


def check_environments(installation: Installation) -> Iterator[Finding]:
    """The settings name only environments that exist: a misspelt one gives the policy to no population."""
    known = installation.store.environments.list()
    settings = installation.settings
    for sentence in settings.unknown_environments(known):
        yield warning(
            sentence,
            "If the name is right, nothing has to be done. Otherwise correct it: the environment that was meant uses"
            " the common settings.",
        )
    if settings.environment_creation == "open" and len(known) >= _NEARLY_FULL * settings.maximum_environments:
        yield warning(
            f"there are {len(known)} environments; from {settings.maximum_environments} on, predictions with a new name"
            " are refused.",
            "Find out what adds them (`lifelong environments list`): delete those that are mistakes, bind tokens to"
            " environments, or raise LIFELONG_MAXIMUM_ENVIRONMENTS.",
        )
    yield ok(f"{len(known)}; the mode here is {settings.modes_in_words}.")


def check_label_error_rates(installation: Installation) -> Iterator[Finding]:
    """The settings name only tasks and classes that exist: a monitor fails on a misspelt class."""
    settings = installation.settings
    tasks = {task.name: task.class_names for task in installation.store.tasks.list()}
    for name in sorted(set(settings.task_label_error_rates) - set(tasks)):
        yield warning(
            f"task_label_error_rates names {name!r}, and there is no such task.",
            f"The tasks are {', '.join(sorted(tasks)) or 'none'}. Correct the name, or remove it.",
        )
    for name, class_names in sorted(tasks.items()):
        try:
            settings.label_error_rates(name, class_names)
        except ConfigurationError as error:
            yield failure(f"{error.field}: {error.message}", error.hint or "")
    own = len(settings.task_label_error_rates)
    yield ok(f"{settings.label_error_rate:g} by default; tasks with their own: {own}.")


def check_summaries(installation: Installation) -> Iterator[Finding]:
    """Window summaries are up to date, and equal a recomputation from the log."""
    store = installation.store
    models = {model.id: model for model in store.models.list()}
    fitted: dict[int, FittedQuantifier | None] = {}
    checked = 0
    for model_id, environment in store.predictions.populations(EPOCH):
        model = models[model_id]
        if model_id not in fitted:
            fitted[model_id] = _fitted(installation, model)
        method = fitted[model_id]
        if method is None:
            continue
        state = store.health.summaries(model_id, environment, method.digest)
        place = f"{model.reference} in {environment}"
        if state is None:
            yield warning(f"{place}: nothing is summarised yet.", "Is `lifelong monitor` running?")
            continue
        yield from _of_state(installation, place, state)
        if not installation.quick:
            for difference in store.summaries.check(model, environment, method)[:_MOST]:
                yield failure(
                    f"{difference} (recomputed from the log)",
                    "Do not trust estimates of this place; tell the developers.",
                )
        checked += 1
    how = "not recomputed (--quick)" if installation.quick else "equal to a recomputation from the log"
    yield ok(f"{checked} populations summarised, {how}.")


def _of_state(installation: Installation, place: str, state: SummaryState) -> Iterator[Finding]:
    patience = _MISSED_CYCLES * timedelta(seconds=installation.settings.cycle_interval_seconds)
    if state.oldest_unread is not None and installation.now - state.oldest_unread > patience:
        yield warning(
            f"{place}: {state.unread} predictions since {state.oldest_unread:%Y-%m-%d %H:%M} UTC are not in the"
            " summaries.",
            "Is `lifelong monitor` running? After an outage it catches up by itself.",
        )
    if state.stale:
        yield warning(
            f"{place}: {state.stale} hours have to be summarised anew, since predictions were deleted.",
            "The next cycle does it: is `lifelong monitor` running?",
        )
    if state.quarantined:
        yield warning(
            f"{place}: {state.quarantined} predictions cannot be judged (not finite, all equal, or of another"
            " number of classes).",
            "Look at the model that sends them; estimates leave them out.",
        )


def _fitted(installation: Installation, model: Model) -> FittedQuantifier | None:
    """The quantifier that the monitor uses; None: it cannot use one."""
    if model.calibration_set_id is None:
        return None
    labelled = installation.store.calibration_sets.load(model.calibration_set_id)
    try:
        return quantifier(installation.settings.quantifier).fit(labelled)
    except UnidentifiableError:
        return None
