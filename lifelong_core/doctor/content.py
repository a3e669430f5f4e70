"""Checks of the database's content: artifacts, heads, recommendations, the group key."""

import stat
from collections.abc import Iterator

from lifelong_core.decision_rules.wording import describe_rule
from lifelong_core.design.recommendation.stated_rule import recommended_rule
from lifelong_core.doctor.findings import Finding, Installation, failure, ok, warning
from lifelong_core.images.preprocessing_digest import differs
from lifelong_core.store import Store, Task
from lifelong_core.store.design.effects import differing_heads, refit_hint
from lifelong_core.store.knowledge.exchange import read_signing_key
from lifelong_core.store.knowledge.neighbours import explain_missing_ranker
from lifelong_core.store.lifecycle.group_keys import check_complete, hashing_key, load_key_file, short_digest
from lifelong_core.values.errors import LifelongError


def check_artifacts(installation: Installation) -> Iterator[Finding]:
    """Graphs and calibration sets exist and are complete."""
    store = installation.store
    wanted = store.named_artifacts()
    for digest, name in wanted.items():
        try:
            store.artifacts.get(digest)
        except LifelongError as error:
            yield failure(f"{name}: {error.message}", error.hint or "Restore it from a backup.")
    yield ok(f"{len(wanted)} there and whole.")


def check_calibration_sets(installation: Installation) -> Iterator[Finding]:
    """The active calibration sets were made with the preprocessing of this host."""
    store = installation.store
    yield from _other_preprocessing(store)
    total = sum(len(store.calibration_sets.list(model.reference)) for model in store.models.list())
    yield ok(f"{total} stored.")


def _other_preprocessing(store: Store) -> Iterator[Finding]:
    registry = store.registry()
    for model_id, recorded in registry.preprocessing_digests.items():
        model = registry.models[model_id]
        if differs(recorded, model.preprocessing):
            yield warning(
                f"the calibration set of {model.reference} was made with another preprocessing document or image"
                " decoder than this host uses.",
                f"If a service runs on this host, calibrate again through it: `{model.calibration_command}`.",
            )


def check_models(installation: Installation) -> Iterator[Finding]:
    """Every model that serves can decide: it was calibrated, so it has a head."""
    store = installation.store
    promoted = {task.promoted_model_id: task.name for task in store.tasks.list()}
    known = store.models.list()
    unused: list[str] = []
    for model in known:
        if model.calibration_set_id is not None:
            continue
        if model.id not in promoted:
            unused.append(model.reference)
            continue
        yield failure(
            f"{model.reference} has no calibration set, although {promoted[model.id]} serves it.",
            f"Calibrate it: `{model.calibration_command}`.",
        )
    note = f"not calibrated and not in use: {', '.join(unused)}" if unused else "all calibrated"
    yield ok(f"{len(known)}, {note}.")


def check_heads(installation: Installation) -> Iterator[Finding]:
    """Every head can be served, and decides as its task says."""
    store = installation.store
    registry = store.registry()
    for reason in sorted(set(registry.damaged.values())):
        yield failure(f"{reason}.", "Publish a head there again, or roll back.")
    for model in registry.without_head():
        yield failure(
            f"{model.reference} is promoted and has no default head that can be served: requests get no answer.",
            f"Publish one: `lifelong heads publish {model.reference} FILE`, or promote another model.",
        )
    for task in registry.tasks.values():
        for head in differing_heads(registry, task):
            yield warning(f"{task.name}: {head.sentence}", refit_hint(task, [head]))
    total = 0
    for model in store.models.list():
        damaged = set(store.heads.list_damaged(model.reference).values()) - set(registry.damaged.values())
        for reason in sorted(damaged):
            yield warning(f"{reason}; it is not in force anywhere.", "It cannot be rolled back to.")
        total += len(store.heads.list(model.reference))
    yield ok(f"{total} published, {len(registry.heads)} in force.")


def check_recommendations(installation: Installation) -> Iterator[Finding]:
    """Every recommendation that is attached to a task can be read, and the task has the rule of the newest one."""
    store, total = installation.store, 0
    for task in store.tasks.list():
        yield from _other_rule(store, task)
        for attached in store.recommendations.list(task.name):
            total += 1
            try:
                _ = attached.recommendation, attached.thresholds
            except LifelongError as error:
                yield failure(error.message, error.hint or "Attach it again.")
    yield ok(f"{total} attached.")


def _other_rule(store: Store, task: Task) -> Iterator[Finding]:
    """A rule that the recommendation in force asks for and the task does not have."""
    attached = store.recommendations.current(task.name)
    try:
        wanted = None if attached is None else recommended_rule(attached.recommendation).rule
    except LifelongError:  # named by the caller
        return
    if wanted is None or wanted == task.decision_rule:
        return
    own, other = (describe_rule(rule, task.class_names) for rule in (task.decision_rule, wanted))
    yield warning(
        f"{task.name} decides by this rule: {own}. Its recommendation asks for another one: {other}.",
        f"Attach it again: `lifelong recommend --attach {task.name} --refit-head`, or in the console.",
    )


def check_knowledge(installation: Installation) -> Iterator[Finding]:
    """Every entry of the knowledge base and the signing key can be read, and there is a ranker for its outcomes."""
    store = installation.store
    for record in () if installation.quick else store.knowledge.list():
        try:
            _ = record.entry
        except LifelongError as error:
            yield failure(error.message, f"Import it again, or `lifelong knowledge delete {record.task}`.")
    read_signing_key(installation.settings.resolved_signing_key_file)
    state = store.knowledge.state()
    if store.rankers.read() is None and (reason := explain_missing_ranker(store)) is not None:
        yield warning(
            reason, "Does a monitor run (`lifelong monitor`)? After a failure: `lifelong knowledge refit`."
        )
    yield ok(f"{state.entries} tasks, {state.fingerprints} fingerprints, {state.transfers} transfers.")


def check_group_key(installation: Installation) -> Iterator[Finding]:
    """The key file exists, holds the key that the database knows, and is private."""
    path = installation.settings.resolved_group_key_file
    known = installation.store.group_keys.known_digests()
    file = load_key_file(path, known)
    known = (*file.unknown_newer(known), *known)  # the service records these when it starts
    hashing_key(file, known)
    check_complete(file, known)
    others = stat.S_IMODE(path.stat().st_mode) & (stat.S_IRWXG | stat.S_IRWXO)
    if others:
        yield warning(
            f"others than its owner may use {path}: with the key, groups can be guessed by trying.",
            f"chmod 600 {path}",
        )
    older = f", and {len(file.keys) - 1} older" if len(file.keys) > 1 else ""
    yield ok(f"{short_digest(file.digests[0])}{older} in {path}.")
