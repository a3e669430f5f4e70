"""`lifelong models`: register, promote and remove ONNX models and external ones."""

from pathlib import Path

import click

from lifelong.commands.common import (
    CommandGroup,
    Name,
    actor,
    open_store,
    task_option,
)
from lifelong.commands.models.calibration_text import print_refusals, print_report
from lifelong.commands.models.evaluations import report, validate
from lifelong.commands.models.preprocessing import preprocessing as preprocessing_command
from lifelong.commands.models.trials import canary, promotions, rollback, shadow, trial
from lifelong.commands.operation_command import operation_command
from lifelong.commands.training.show import training as training_command
from lifelong.labelled_logits import read_labelled_logits
from lifelong.printing import echo
from lifelong_core.configuration.plausibility import check_normalisation
from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import LabeledLogits
from lifelong_core.operations.develop.evaluations import ListValidations
from lifelong_core.operations.develop.retrainings import ListTrainings
from lifelong_core.operations.models import ListModels, PromotedAnswer, PromoteModel, RemoveModel
from lifelong_core.runtime.graph_check import CheckedGraph, check_new_graph
from lifelong_core.store import Store, describe_serving, examine_first, register_calibration
from lifelong_core.store.registry.serving import WORKERS_PATIENCE_SECONDS
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_core.values.validation_errors import read_json

existing_file = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(cls=CommandGroup, short_help="Add, try, promote, list and remove models: ONNX or external.")
def models() -> None:
    """Models of a task: an ONNX graph that is served here, or an external one that sends logits."""


for _command in (
    preprocessing_command,
    validate,
    report,
    shadow,
    canary,
    trial,
    rollback,
    promotions,
    training_command,
    operation_command(
        ListTrainings,
        "trainings",
        rows=lambda answer: [
            {
                "model": training.model,
                "task": training.task,
                "architecture": training.recipe["architecture"],
                "created_at": training.created_at,
                "created_by": training.created_by,
            }
            for training in answer.trainings
        ],
        empty="No model was trained here.",
    ),
    operation_command(
        ListValidations,
        "validations",
        rows=lambda answer: [vars(validation) for validation in answer.validations],
        empty="No model was validated: `lifelong models validate`.",
    ),
):
    models.add_command(_command)


@models.command()
@click.argument("name", type=Name())
@task_option("The task that the model solves (`lifelong tasks add`).", required=True)
@click.option("--onnx", type=existing_file, help="ONNX graph: one image tensor in, logits (N, C) out.")
@click.option(
    "--preprocessing",
    type=existing_file,
    help="JSON document (`lifelong models preprocessing` writes one). Without it, images become RGB in 0..1 at"
    " their own size. All fields: docs/preprocessing.md.",
)
@click.option("--external", is_flag=True, help="The model runs elsewhere and sends logits to /v1/logits.")
@click.option(
    "--half",
    is_flag=True,
    help="Convert the graph to half precision (float16), which GPUs compute faster, and say how much the logits change."
    " Calibrate the model with images.",
)
@click.option(
    "--calibration",
    type=existing_file,
    help="npz with logits (N, C), labels (N,) and perhaps groups (N,); or CSV, see `lifelong calibrate`.",
)
@click.option(
    "--force-because",
    metavar="REASON",
    help="Take a calibration set that its report refuses, or an implausible mean or standard deviation; the reason goes"
    " to the audit log.",
)
def add(
    name: str,
    task: str,
    onnx: Path | None,
    preprocessing: Path | None,
    *,
    external: bool,
    half: bool,
    calibration: Path | None,
    force_because: str | None,
) -> None:
    """Add the next version of model NAME; with --calibration its first head is published, too.

    A calibration set that is refused adds no model.

    Logit i must belong to class i of the task: `lifelong tasks list` shows the classes in their
    order. torchvision's ImageFolder numbers classes by the alphabet of their folders.
    """
    if onnx is None and not external:
        raise InvalidInputError(
            "a model needs its graph.",
            field="--onnx",
            hint="Give --onnx FILE, or --external if the model runs elsewhere and sends logits.",
        )
    if external and (onnx or preprocessing):
        raise InvalidInputError(
            "an external model sends logits and has neither graph nor preprocessing here.",
            field="--onnx" if onnx else "--preprocessing",
            hint="Leave it out, or leave out --external.",
        )
    if half and (external or calibration):
        raise InvalidInputError(
            "an external model has no graph to convert."
            if external
            else "the logits of the file are those of the graph before its conversion.",
            field="--half",
            hint="Leave it out."
            if external
            else "Leave out --calibration, and calibrate with images: `lifelong calibrate NAME held_out/`.",
        )
    document = None
    if onnx is not None:
        document = _read_preprocessing(preprocessing) if preprocessing else Preprocessing()
        check_normalisation(document, force_reason=force_because)
    with open_store() as store:
        labelled = _examined(store, task, document, calibration, force_because) if calibration else None
        content = None
        if onnx is not None and document is not None:
            checked = _checked(store, onnx, name, task, document, half=half)
            content = checked.content
            if checked.half_difference is not None:
                echo(
                    f"Converted the graph to half precision: over images of random colours, with {checked.provider}, no"
                    f" logit changed by more than {checked.half_difference:.2g}."
                )
        model = store.models.add(
            task,
            name,
            kind="onnx" if onnx else "external",
            onnx=content,
            preprocessing=document,
            force_reason=force_because,
            actor=actor(),
        )
        echo(f"Added model {model.reference}.")
        if labelled is not None:
            head = register_calibration(
                store, model.reference, labelled, actor=actor(), force_reason=force_because
            )
            echo(f"Fitted head {head.version} on {labelled.samples} calibration cases.")
        echo(describe_serving(store, model.reference, patience_seconds=WORKERS_PATIENCE_SECONDS))


def _examined(
    store: Store,
    task: str,
    preprocessing: Preprocessing | None,
    calibration: Path,
    force_reason: str | None,
) -> LabeledLogits:
    """The calibration set of a model that is still to be added, after its report is printed.

    Raises:
        Exit: the report refuses it, and no reason forces it.
    """
    described = store.tasks.get(task)
    labelled = read_labelled_logits(calibration, described.class_names)
    report = examine_first(store, labelled, described, preprocessing)
    print_report(report.to_document())
    if report.refusals:
        print_refusals(report.to_document(), forced=force_reason is not None)
        if force_reason is None:
            raise click.exceptions.Exit(1)
    return labelled


def _read_preprocessing(file: Path) -> Preprocessing:
    try:
        return read_json(Preprocessing, file.read_bytes())
    except InvalidInputError as error:
        error.field = f"{file}: {error.field}"
        raise


def _checked(
    store: Store, graph: Path, name: str, task: str, preprocessing: Preprocessing, *, half: bool
) -> CheckedGraph:
    """The graph as one self-contained file, which the service's own code has loaded and run in another process."""
    try:
        return check_new_graph(
            store,
            graph,
            name,
            task,
            actor=actor(),
            preprocessing=preprocessing,
            settings=Settings.load(),
            external_data=graph.parent,
            option="--onnx",
            precision="half" if half else "graph",
        )
    except InvalidInputError as error:
        error.field = "--half" if error.field == "precision" else error.field
        raise


models.add_command(
    operation_command(
        ListModels,
        "list",
        help_text="List all models, newest version last.",
        rows=lambda answer: [
            {
                "model": model.model,
                "task": model.task,
                "kind": model.kind,
                "calibrated": model.calibration_set_id is not None,
                "promoted": model.promoted,
            }
            for model in answer.models
        ],
        empty="No model yet: `lifelong models add`.",
    )
)


def _promoted(answer: PromotedAnswer, _: PromoteModel) -> str:
    lines = [answer.serving]
    if answer.fitted_heads:
        lines.append(f"Fitted heads for: {', '.join(answer.fitted_heads)}.")
    lines += [f"Note: {note}" for note in answer.notes[:-1]] + answer.notes[-1:]
    return "\n".join(lines)


models.add_command(
    operation_command(
        PromoteModel,
        "promote",
        help_text="""Let MODEL (name@version) answer the requests that name no model.

        All running workers must have loaded it; the command waits for them. Without a running worker, the graph is
        checked here.

        A model is refused if it misses the acceptance thresholds of its task or was not validated by them (`lifelong
        models validate`), if it is far worse on its calibration set than the promoted model on its own, if its newest
        promotion report (`lifelong models report`) advises against it, or if its calibration set was made with another
        preprocessing than this installation uses for it.
        """,
        text=_promoted,
        flags={"force_reason": "--force-because"},
        metavars={"force_reason": "REASON"},
    )
)
models.add_command(
    operation_command(
        RemoveModel,
        "remove",
        help_text="""Remove the unused MODEL (name@version) with its calibration sets, heads and graph.

        A model is in use if it is promoted, has logged predictions, or has a head in an environment.
        """,
        text=lambda answer, _: f"Removed {answer.removed}. Its version is not used again.",
    )
)
