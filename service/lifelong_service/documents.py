"""Records of the store as JSON documents."""

from typing import cast

from lifelong_core.store.records import (
    AuditEntry,
    CalibrationSet,
    Cycle,
    HeadPin,
    HeadRecord,
    Model,
    Registry,
    Rejection,
    ServingWorker,
    Task,
    Token,
)
from lifelong_service.schemas.history import (
    AuditAnswer,
    CycleAnswer,
    RejectionAnswer,
    ReportDocument,
    TokenAnswer,
    WorkerAnswer,
)
from lifelong_service.schemas.registry import (
    CalibrationSetAnswer,
    HeadAnswer,
    HeadParameters,
    ModelAnswer,
    PinAnswer,
    TaskAnswer,
)


def task_document(task: Task, models: dict[int, Model]) -> TaskAnswer:
    """A task with the reference of the model that it serves."""
    promoted = models.get(task.promoted_model_id) if task.promoted_model_id is not None else None
    return {
        "name": task.name,
        "classes": list(task.class_names),
        "costs": task.costs.tolist(),
        "promoted_model": promoted.reference if promoted else None,
        "created_at": task.created_at.isoformat(),
    }


def model_document(model: Model, task: Task) -> ModelAnswer:
    """A model with the name and classes of its task."""
    return {
        "model": model.reference,
        "name": model.name,
        "version": model.version,
        "task": task.name,
        "classes": list(task.class_names),
        "kind": model.kind,
        "artifact": model.artifact,
        "preprocessing": model.preprocessing.model_dump(mode="json") if model.preprocessing else None,
        "calibration_set_id": model.calibration_set_id,
        "promoted": task.promoted_model_id == model.id,
        "created_at": model.created_at.isoformat(),
    }


def calibration_set_document(record: CalibrationSet) -> CalibrationSetAnswer:
    """A calibration set without its arrays."""
    return {
        "id": record.id,
        "digest": record.digest,
        "samples": record.samples,
        "prevalence": record.prevalence.tolist(),
        "created_at": record.created_at.isoformat(),
    }


def head_document(record: HeadRecord) -> HeadAnswer:
    """A head with all its parameters."""
    return {
        "version": record.version,
        "digest": record.head.digest,
        "created_at": record.created_at.isoformat(),
        "created_by": record.created_by,
        "head": cast("HeadParameters", record.head.to_document()),
    }


def pin_document(pin: HeadPin) -> PinAnswer:
    """A pin; environment null is the model's default head."""
    return {
        "environment": pin.environment,
        "reason": pin.reason,
        "pinned_at": pin.pinned_at.isoformat(),
        "pinned_by": pin.pinned_by,
    }


def active_heads_document(model: Model, registry: Registry) -> dict[str, int]:
    """Which head version serves each environment that has its own; `*` is the model's default head."""
    return {
        environment or "*": record.version
        for (model_id, environment), record in registry.heads.items()
        if model_id == model.id
    }


def worker_document(worker: ServingWorker, models: dict[int, Model]) -> WorkerAnswer:
    """A serving process and what it runs; environment `*` is a model's default head."""
    heads: dict[str, dict[str, int]] = {}
    for (model_id, environment), version in worker.heads.items():
        if model_id in models:
            heads.setdefault(models[model_id].reference, {})[environment or "*"] = version
    return {
        "worker": worker.id,
        "host": worker.host,
        "process": worker.process,
        "started_at": worker.started_at.isoformat(),
        "seen_at": worker.seen_at.isoformat(),
        "lost": worker.is_lost,
        "revision": worker.revision,
        "heads": heads,
        "models": {
            models[model_id].reference: {"provider": load.provider, "failure": load.failure}
            for model_id, load in worker.models.items()
            if model_id in models
        },
    }


def cycle_document(cycle: Cycle, models: dict[int, Model]) -> CycleAnswer:
    """A cycle with its report."""
    return {
        "id": str(cycle.id),
        "model": models[cycle.model_id].reference,
        "environment": cycle.environment,
        "due_at": cycle.due_at.isoformat(),
        "started_at": cycle.started_at.isoformat(),
        "finished_at": cycle.finished_at.isoformat(),
        "outcome": cycle.outcome,
        "head_version": cycle.head_version,
        "published_version": cycle.published_version,
        "proposal": cast("HeadParameters", cycle.proposal.to_document()) if cycle.proposal else None,
        "rejection": rejection_document(cycle.rejection) if cycle.rejection else None,
        "window_samples": cycle.window_samples,
        "horizon": cycle.horizon,
        "report": cast("ReportDocument", cycle.report),
    }


def rejection_document(rejection: Rejection) -> RejectionAnswer:
    """Who declined a proposal, when and why."""
    return {
        "reason": rejection.reason,
        "rejected_at": rejection.rejected_at.isoformat(),
        "rejected_by": rejection.rejected_by,
    }


def token_document(token: Token) -> TokenAnswer:
    """A token without its secret."""
    return {
        "name": token.name,
        "scopes": sorted(token.scopes),
        "created_at": token.created_at.isoformat(),
        "expires_at": token.expires_at.isoformat() if token.expires_at else None,
        "revoked_at": token.revoked_at.isoformat() if token.revoked_at else None,
    }


def audit_document(entry: AuditEntry) -> AuditAnswer:
    """Who changed what, when."""
    return {
        "id": entry.id,
        "at": entry.at.isoformat(),
        "actor": entry.actor,
        "action": entry.action,
        "subject": entry.subject,
        "details": entry.details,
    }
