"""Records of the store as JSON documents."""

from lifelong_core.decision_rules.rules import rule_document
from lifelong_core.decision_rules.wording import describe_rule
from lifelong_core.entities.access import Token
from lifelong_core.store.registry.monitors import MonitorProcess
from lifelong_core.store.registry.records import Environment, Model, Registry, ServingWorker, Task
from lifelong_service.schemas.history import EnvironmentAnswer, MonitorAnswer, TokenAnswer, WorkerAnswer
from lifelong_service.schemas.registry import (
    ModelAnswer,
    TaskAnswer,
)


def task_document(task: Task, models: dict[int, Model]) -> TaskAnswer:
    """A task with the reference of its promoted model."""
    promoted = models.get(task.promoted_model_id) if task.promoted_model_id is not None else None
    return {
        "name": task.name,
        "classes": list(task.class_names),
        "costs": task.costs.tolist(),
        "decision_rule": rule_document(task.decision_rule),
        "decision_rule_text": describe_rule(task.decision_rule, task.class_names),
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


def active_heads_document(model: Model, registry: Registry) -> dict[str, int]:
    """Active head version of each environment with its own head; `*` is the model's default head."""
    return {
        environment or "*": record.version
        for (model_id, environment), record in registry.heads.items()
        if model_id == model.id
    }


def worker_document(worker: ServingWorker, models: dict[int, Model]) -> WorkerAnswer:
    """A serving process with its heads and models; environment `*` is a model's default head."""
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


def monitor_document(monitor: MonitorProcess, models: dict[int, Model]) -> MonitorAnswer:
    """A monitor, its latest tick, and its latest visit to each population."""
    heartbeat = monitor.heartbeat
    tick = heartbeat.tick
    return {
        "monitor": heartbeat.id,
        "host": heartbeat.host,
        "process": heartbeat.process,
        "started_at": heartbeat.started_at.isoformat(),
        "seen_at": monitor.seen_at.isoformat(),
        "lost": monitor.is_lost,
        "interval_seconds": heartbeat.interval_seconds,
        "mode": heartbeat.mode,
        "environment_modes": dict(heartbeat.environment_modes),
        "settings": None if heartbeat.settings is None else dict(heartbeat.settings),
        "tick": None
        if tick is None
        else {
            "due_at": tick.due_at.isoformat(),
            "started_at": tick.started_at.isoformat(),
            "finished_at": tick.finished_at.isoformat() if tick.finished_at else None,
            "problem": tick.problem,
        },
        "populations": [
            {
                "model": models[visit.model_id].reference,
                "environment": visit.environment,
                "visited_at": visit.visited_at.isoformat(),
                "outcome": visit.outcome,
                "reason": visit.reason,
                "watched_at": visit.watched_at.isoformat() if visit.watched_at else None,
            }
            for visit in heartbeat.visits
            if visit.model_id in models
        ],
    }


def environment_document(environment: Environment) -> EnvironmentAnswer:
    """An environment as JSON values."""
    return {
        "name": environment.name,
        "created_at": environment.created_at.isoformat(),
        "created_by": environment.created_by,
        "disabled_at": environment.disabled_at.isoformat() if environment.disabled_at else None,
    }


def token_document(token: Token) -> TokenAnswer:
    """A token without its secret."""
    return {
        "name": token.name,
        "scopes": sorted(token.scopes),
        "created_at": token.created_at.isoformat(),
        "expires_at": token.expires_at.isoformat() if token.expires_at else None,
        "revoked_at": token.revoked_at.isoformat() if token.revoked_at else None,
        "environments": None if token.environments is None else sorted(token.environments),
        "rotated_at": token.rotated_at.isoformat() if token.rotated_at else None,
        "previous_expires_at": token.previous_expires_at.isoformat() if token.previous_expires_at else None,
        "last_used_at": token.last_used_at.isoformat() if token.last_used_at else None,
    }
