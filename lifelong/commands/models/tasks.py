"""`lifelong tasks`: classification problems with their class names, confusion costs and decision rule."""

import json
from pathlib import Path
from typing import Any

import click

from lifelong.commands.common import CommandGroup, Name
from lifelong.commands.connection import connect
from lifelong.commands.operation_command import operation_command
from lifelong.printing import echo
from lifelong_core.decision_rules.rules import DecisionRule, rule_document, rule_from_document
from lifelong_core.operations.tasks import ListTasks, NewTask
from lifelong_core.values.errors import InvalidInputError


def parse_costs(text: str | None, classes: int) -> list[list[float]]:
    """The cost matrix given as JSON text or as the path of a JSON file; 0-1 costs without one."""

    if text is None:
        return [[float(true != decided) for decided in range(classes)] for true in range(classes)]
    try:
        document: Any = json.loads(text if text.lstrip().startswith("[") else Path(text).read_text())
    except (OSError, json.JSONDecodeError) as error:
        raise InvalidInputError(
            f"{text[:80]!r} is neither a JSON matrix nor a readable file of one ({error}).",
            field="--costs",
            hint="Example: '[[0, 1], [5, 0]]' - rows are true classes, columns decisions.",
        ) from error
    return document


def parse_decision_rule(text: str | None) -> DecisionRule | None:
    """The rule given as a word, as JSON text or as the path of a JSON file; None without one."""

    if text is None:
        return None
    if text in ("bayes", "argmax"):
        return rule_from_document({"kind": text})
    try:
        document: Any = json.loads(
            text if text.lstrip().startswith("{") else Path(text).read_text("utf-8-sig")
        )
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"{text[:80]!r} is neither bayes, argmax, a JSON object nor a readable file of one ({error}).",
            field="--decision-rule",
            hint='Example: \'{"kind": "target_value", "metric": "TPR", "value": 0.9}\'.',
        ) from error
    return rule_from_document(document)


decision_rule_option = click.option(
    "--decision-rule",
    help="bayes, argmax, or the JSON object of a rule (or its file), e.g."
    ' \'{"kind": "target_value", "metric": "TPR", "value": 0.9}\'. Default: bayes, the least expected cost.',
)


@click.group(cls=CommandGroup, short_help="Add and list tasks: class names and confusion costs.")
def tasks() -> None:
    """Tasks are classification problems with class names and the cost of each confusion."""


@tasks.command()
@click.argument("name", type=Name())
@click.option("--classes", required=True, help="Class names in the order of the logits, separated by commas.")
@click.option(
    "--costs", help="JSON matrix (or its file): rows true class, columns decision. Default: 0-1 costs."
)
@decision_rule_option
@click.option(
    "--force-because",
    metavar="REASON",
    help="Take costs by which a wrong decision is cheaper than the right one; the reason goes to the audit log.",
)
def add(
    name: str, classes: str, costs: str | None, decision_rule: str | None, force_because: str | None
) -> None:
    """Add the task NAME."""
    class_names = [part.strip() for part in classes.split(",")]
    rule = parse_decision_rule(decision_rule)
    new = NewTask(
        name=name,
        classes=class_names,
        costs=parse_costs(costs, len(class_names)),
        decision_rule=None if rule is None else rule_document(rule),
        force_reason=force_because,
    )
    with connect() as connection:
        task = connection.send(new)
    echo(f"Added task {task.name} with classes {', '.join(task.class_names)}.")


tasks.add_command(
    operation_command(
        ListTasks,
        "list",
        rows=lambda answer: [
            {
                "task": task.name,
                "classes": ", ".join(task.class_names),
                "costs": task.costs.tolist(),
                "decision_rule": task.decision_rule_text,
            }
            for task in answer.tasks
        ],
        empty="No task yet: `lifelong tasks add`.",
    )
)
