"""POST `/v1/admin/models/{reference}/calibration-sets`: labelled logits, and the head fitted on them."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse

from lifelong_core.deploy import LabeledLogits, quantifier
from lifelong_core.deploy.criterion.expected_criterion import describe_expectation, describe_head_rule
from lifelong_core.entities.access import Scope
from lifelong_core.entities.calibration import CalibrationTrialAnswer, NewCalibrationSetAnswer, Outcome
from lifelong_core.runtime.graph_check import cannot_be_loaded
from lifelong_core.store import (
    CalibrationCandidate,
    Model,
    RefusedCalibrationError,
    check_publishable,
    describe_serving,
    examine_candidate,
    publish_candidate,
)
from lifelong_core.values.arrays import as_labels, as_logits, read_labels
from lifelong_core.values.errors import LifelongError, UnidentifiableError
from lifelong_service.bodies.json_documents import parse_document
from lifelong_service.bodies.parameters import check_parameters
from lifelong_service.guard.access import access, actor_of, worker_of
from lifelong_service.guard.route import GuardedRoute
from lifelong_service.routes.labelled_bodies import (
    LABELLED_TYPES,
    LabelledRows,
    check_columns,
    labelled_request_body,
    read_labelled,
)
from lifelong_service.worker.worker import Worker

router = APIRouter(route_class=GuardedRoute, tags=["calibration sets"])


class NewCalibrationSet(LabelledRows):
    """Labelled logits: (N, C) raw outputs, N labels, and optionally N group keys (patients)."""

    preprocessing_digest: Annotated[
        str | None,
        Field(
            description="How the images were preprocessed, as the answer of `/v1/admin/models/{reference}/logits` says;"
            " null: unknown. In an npz file, the array of this name."
        ),
    ] = None


@router.post(
    "/v1/admin/models/{reference}/calibration-sets",
    status_code=201,
    openapi_extra=labelled_request_body(NewCalibrationSet, "calibration_set"),
    responses={
        201: {"model": NewCalibrationSetAnswer},
        200: {"model": CalibrationTrialAnswer, "description": "With `dry_run`: the report only."},
    },
)
@access(Scope.OPERATE, media_types=LABELLED_TYPES, body_limit="maximum_labelled_bytes")
async def add_calibration_set(  # noqa: PLR0913, RUF100 - the parts of a request
    request: Request,
    reference: str,
    *,
    dry_run: Annotated[
        bool, Query(description="Answer the report and the outcome only; nothing is stored.")
    ] = False,
    force_reason: Annotated[
        str | None,
        Query(description="Why the set is right although its report refuses it; kept in the audit log."),
    ] = None,
) -> JSONResponse:
    """Store labelled logits (npz, or JSON), fit a head on them and publish it as the model's default head.

    The answer's `report` compares that head with the present one. A refused set is answered with status 422, the code
    `calibration_refused` and the report as `details`; a dry run returns the refusal as `outcome`. A set with another
    `preprocessing_digest` than this worker computes for the model is refused with status 422, and nothing overrides it.
    The model is promoted if its task has no promoted model.
    """
    check_parameters(request.query_params, ("dry_run", "force_reason"))
    worker = worker_of(request)
    labelled = await read_labelled(
        request, "calibration_set", model=reference, from_json=_from_json, from_npz=_from_npz
    )
    candidate = await run_in_threadpool(_examine, worker, reference, labelled)
    if dry_run:
        judged = await run_in_threadpool(_try, worker, candidate, force_reason)
        return JSONResponse(judged.to_document())
    published = await run_in_threadpool(_publish, worker, candidate, actor_of(request), force_reason)
    return JSONResponse(published.to_document(), 201)


def _from_json(content: bytes, maximum_bytes: int, class_names: Sequence[str]) -> LabeledLogits:
    document = parse_document(content, NewCalibrationSet)
    check_columns({"labels": document.labels, "groups": document.groups}, maximum_bytes)
    logits, labels = as_logits(document.logits), read_labels(document.labels, class_names)
    groups = None if document.groups is None else np.asarray(document.groups)
    return LabeledLogits(
        logits, as_labels(labels, classes=logits.shape[1]), groups, document.preprocessing_digest
    )


def _from_npz(content: bytes, maximum_bytes: int, class_names: Sequence[str]) -> LabeledLogits:
    return LabeledLogits.from_bytes(content, maximum_bytes=maximum_bytes, class_names=class_names)


def _examine(worker: Worker, reference: str, labelled: LabeledLogits) -> CalibrationCandidate:
    store, settings = worker.store, worker.settings
    model = store.models.get(reference)
    candidate = examine_candidate(store, model.reference, labelled)
    _check_quantifiable(labelled, settings.quantifier)
    _check_loadable(worker, model)
    return candidate


def _judged(candidate: CalibrationCandidate) -> dict[str, Any]:
    """What the answers of a dry run and of a publication share."""
    return {
        "model": candidate.model.reference,
        "old_head_version": candidate.old_version,
        "decision_rule_text": describe_head_rule(candidate.head),
        "expected_criterion_text": describe_expectation(candidate.head),
        "report": candidate.report.to_document(),
    }


def _try(worker: Worker, candidate: CalibrationCandidate, force_reason: str | None) -> CalibrationTrialAnswer:
    outcome: Outcome = "forced" if candidate.report.refusals else "published"
    try:
        check_publishable(worker.store, candidate, force_reason=force_reason)
    except RefusedCalibrationError:
        outcome = "refused"
    return CalibrationTrialAnswer(dry_run=True, outcome=outcome, **_judged(candidate))


def _publish(
    worker: Worker, candidate: CalibrationCandidate, actor: str, force_reason: str | None
) -> NewCalibrationSetAnswer:
    store, patience_seconds = worker.store, worker.settings.request_timeout_seconds / 2
    head = publish_candidate(store, candidate, actor=actor, force_reason=force_reason)
    model = store.models.get(candidate.model.reference)
    return NewCalibrationSetAnswer.of(
        store.calibration_sets.get(model.calibration_set_id or 0),
        head_version=head.version,
        serving=describe_serving(store, model.reference, patience_seconds=patience_seconds),
        **_judged(candidate),
    )


def _check_loadable(worker: Worker, model: Model) -> None:
    """Refuse a model that this worker cannot load: its head would be active, but could answer no request.

    Raises:
        ConflictError: its graph cannot be loaded.
    """
    if model.kind == "external":
        return
    try:
        worker.classifier(model)
    except LifelongError as error:
        raise cannot_be_loaded(model, error) from error


def _check_quantifiable(labelled: LabeledLogits, method: str) -> None:
    """Refuse a set from which no cycle can estimate a prevalence, before its head becomes active.

    PACC is tried first: it compares the classes' mean probabilities within milliseconds. The slower method of the
    monitor is tried only if PACC cannot separate the classes.

    Raises:
        UnidentifiableError: the scores do not separate some classes.
    """
    try:
        quantifier("PACC").fit(labelled)
    except UnidentifiableError:
        try:
            quantifier(method).fit(labelled)
        except UnidentifiableError as error:
            raise UnidentifiableError(
                error.message,
                field="logits",
                hint="Check that these are the model's logits, and that the classes can be told apart by them.",
            ) from error
