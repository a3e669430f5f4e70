"""The decision rule of a task and of its heads in force, as the page of the task shows them."""

from datetime import UTC, datetime
from typing import Any

from lifelong_core.decision_rules.wording import describe_rule
from lifelong_core.deploy.criterion.expected_criterion import describe_expectation, describe_head_rule
from lifelong_core.store import Registry, Store, Task
from lifelong_core.store.heads.checks import follows_task
from lifelong_core.store.heads.outlook import describe_outlook


def decision_view(store: Store, registry: Registry, task: Task) -> dict[str, Any]:
    """The rule as a phrase, and the heads in force of the models that serve or are on trial."""
    at = datetime.now(UTC)
    return {
        "rule": describe_rule(task.decision_rule, task.class_names),
        "heads": [
            {
                "model": registry.models[model_id].reference,
                "place": environment or "default head",
                "environment": environment or "",
                "sequence": store.heads.activations(
                    registry.models[model_id].reference, environment=environment
                )[-1].sequence,
                "outlook": describe_outlook(store, registry.models[model_id], environment, at=at),
                "version": record.version,
                "rule": describe_head_rule(record.head),
                "expected": describe_expectation(record.head),
                "follows": follows_task(record.head, task),
            }
            for (model_id, environment), record in sorted(
                registry.heads.items(), key=lambda item: (item[0][0], item[0][1] or "")
            )
            if registry.models[model_id].task_id == task.id
            and registry.role(model_id) in ("promoted", "canary", "shadow")
        ],
    }
