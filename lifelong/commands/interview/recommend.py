"""`lifelong recommend`: an interview that leads from a clinical problem to the metrics that fit it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from lifelong.commands.common import as_json, output_option
from lifelong.commands.connection import connect
from lifelong.commands.interview.attached import attach, find_task
from lifelong.commands.interview.dialogue import Dialogue, InterviewSaved
from lifelong.commands.interview.files import (
    DEFAULT_STATE,
    load_interview,
    parse_prevalence,
    read_answers,
    read_proposals,
    with_texts,
)
from lifelong.commands.interview.recommendation_text import print_recommendation
from lifelong.commands.interview.screen import InterviewScreen, warn_of_costs
from lifelong.commands.results import terminal, write_text
from lifelong.commands.validation.option_values import parse_threshold
from lifelong.printing import echo
from lifelong_core.design import (
    AcceptanceThreshold,
    Interview,
    Proposal,
    Recommendation,
    next_questions,
    start_interview,
)
from lifelong_core.design.interview.cost_builders import rules_hint
from lifelong_core.design.interview.cost_rules import BEGINNINGS
from lifelong_core.design.method.schema import Question
from lifelong_core.values.errors import InvalidInputError

existing_file = click.Path(exists=True, dir_okay=False, path_type=Path)
file = click.Path(dir_okay=False, path_type=Path)


@click.command(short_help="Recommend metrics by an interview about the problem.")
@click.option("--classes", help="Names of the classes in the order of the scores, separated by commas.")
@click.option(
    "--state",
    type=file,
    help=f"File of the interview, to continue it later. Default: {DEFAULT_STATE} in this folder.",
)
@click.option("--restart", is_flag=True, help="Start a new interview; it replaces the answers in --state.")
@click.option("--answers", type=existing_file, help="YAML or JSON with all answers: nothing is asked.")
@click.option(
    "--data",
    "--labels",
    type=existing_file,
    help="npz with labels, and probabilities, logits, decisions or groups: it proposes answers for you to confirm.",
)
@click.option("--prevalence", help="With --data: share of each class in use, e.g. 0.994,0.006.")
@click.option("--yes", is_flag=True, help="Accept the proposals of --data without confirming each.")
@click.option(
    "--costs",
    metavar="RULE|FILE",
    help="Costs by a rule (50:1; linear; quadratic; all 1 but malignant -> benign = 50; blocks 1, 10: a, b | c), or a"
    " table exported from a spreadsheet.",
)
@output_option("Write the recommendation here, as JSON.")
@as_json
@click.option(
    "--attach", metavar="TASK", help="Attach the recommendation to this task: its models are judged by it."
)
@click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    metavar="LABEL=VALUE",
    help="With --attach: an acceptance threshold, e.g. BA=0.8; repeatable. LABEL[CLASS]=VALUE for one class.",
)
@click.option(
    "--refit-head",
    is_flag=True,
    help="With --attach: fit the heads of the task's promoted model again, for the costs and the rule of the answers.",
)
@click.option(
    "--force-because",
    metavar="REASON",
    help="With --attach: take costs by which a wrong decision is cheaper than the right one; the reason goes to the"
    " audit log.",
)
def recommend(**options: Any) -> None:
    """Find the metrics that fit a clinical problem, in an interview of ten to twenty questions.

    Every answer is saved at once; run the command again to continue. Only --attach needs a database.

    An answers file holds answers by item or field, and choices by guide; a saved interview is one as well. If an answer
    or a choice is missing, the command names it and exits with status 1.

    \b
      class_names: [benign, malignant]
      answers: {FP5.1: yes, FP2.6: argmax, FP4.3: yes, grouping_variable: patient, ...}
      choices: {DG2.1: EC}
    """
    _check(options)
    names = _class_names(options)
    thresholds = _thresholds(options, names)
    if options["answers"] is not None:
        interview = _named(read_answers(options["answers"], names), names, options)
        proposals = _proposals(options, interview)
        interview = _with_costs(_taken_over(interview, proposals) if options["yes"] else interview, options)
        if "costs" in proposals and "costs" in {question.field for question in _open_questions(interview)}:
            interview = interview.answer("costs", proposals["costs"].value)
    else:
        interview = _interview(options, names)
    recommendation = _complete(interview, options)
    _deliver(recommendation, interview, options, thresholds)


def _check(options: dict[str, Any]) -> None:
    if options["answers"] is not None and (options["state"] is not None or options["restart"]):
        raise click.UsageError("--answers asks nothing, so there is no --state to continue.")
    for name, flag, other in (
        ("thresholds", "--threshold", "attach"),
        ("refit_head", "--refit-head", "attach"),
        ("force_because", "--force-because", "attach"),
        ("prevalence", "--prevalence", "data"),
        ("yes", "--yes", "data"),
    ):
        if options[name] not in (None, False, ()) and options[other] is None:
            raise click.UsageError(f"{flag} belongs to --{other}.")
    if options["answers"] is not None and options["data"] is not None and not options["yes"]:
        raise click.UsageError(
            "--answers asks nothing: add --yes to accept the proposals of --data for missing answers."
        )


def _class_names(options: dict[str, Any]) -> tuple[str, ...] | None:
    """The names of --classes, or of the task of --attach."""
    given = None
    if options["classes"] is not None:
        given = tuple(name.strip() for name in options["classes"].split(","))
    if options["attach"] is None:
        return given
    with connect() as connection:
        names = tuple(find_task(connection, options["attach"]).class_names)
    _refuse_others(given, names, "--classes", options)
    return names


def _thresholds(options: dict[str, Any], names: tuple[str, ...] | None) -> list[AcceptanceThreshold]:
    """The acceptance thresholds of --threshold, read before the interview."""
    return [parse_threshold(text, names) for text in options["thresholds"]]


def _named(interview: Interview, names: tuple[str, ...] | None, options: dict[str, Any]) -> Interview:
    if names is None or names == interview.class_names:
        return interview
    _refuse_others(interview.class_names, names, "the answers", options)
    count = interview.fingerprint.number_of_classes
    if count not in (None, len(names)):
        raise InvalidInputError(
            f"there are {len(names)} names, but the answers say {count} classes.",
            field=_source_of_names(options),
        )
    try:
        return interview.with_class_names(names)
    except InvalidInputError as error:
        raise InvalidInputError(error.message, field=_source_of_names(options), hint=error.hint) from error


def _source_of_names(options: dict[str, Any]) -> str:
    """The option that gives the names of the classes: a task has them, too."""
    return "--attach" if options["attach"] is not None and options["classes"] is None else "--classes"


def _refuse_others(
    given: tuple[str, ...] | None, names: tuple[str, ...], place: str, options: dict[str, Any]
) -> None:
    """Refuse classes with other names or in another order: costs and target classes would be swapped."""
    if given in (None, names):
        return
    other = "--classes" if options["attach"] is None else f"the task {options['attach']}"
    is_kept = options["answers"] is None and place != "--classes"
    raise InvalidInputError(
        f"the classes are {', '.join(given)} in {place}, and {', '.join(names)} in {other}.",
        field=_source_of_names(options),
        hint=f"Use the same names in the same order{', or --restart' if is_kept else ''}.",
    )


def _proposals(options: dict[str, Any], interview: Interview) -> Mapping[str, Proposal]:
    """The proposals of --data for the classes that are known already, and the costs that the task of --attach has."""
    found: dict[str, Proposal] = {}
    if options["data"] is not None:
        found = read_proposals(
            options["data"],
            interview.fingerprint.number_of_classes,
            interview.class_names,
            parse_prevalence(options["prevalence"]),
        )
    if options["attach"] is not None and options["costs"] is None:
        found |= _costs_of_task(options["attach"], interview)
    return found


def _costs_of_task(task: str, interview: Interview) -> dict[str, Proposal]:
    """The costs of the task as a proposal; none where it has the default ones, or other classes."""
    with connect() as connection:
        found = find_task(connection, task)
    rows = tuple(tuple(row) for row in found.costs.tolist())
    classes = len(found.class_names)
    is_default = rows == tuple(tuple(float(i != k) for k in range(classes)) for i in range(classes))
    if is_default or interview.fingerprint.number_of_classes not in {None, classes}:
        return {}
    return {"costs": Proposal(field="costs", value=rows, reason=f"the task {task} has these costs")}


def _taken_over(interview: Interview, proposals: Mapping[str, Proposal]) -> Interview:
    """The interview with the proposals for questions without an answer."""
    given = interview.fingerprint.answered_fields()
    return with_texts(
        interview, {field: item.value for field, item in proposals.items() if field not in given}
    )


def _with_costs(interview: Interview, options: dict[str, Any]) -> Interview:
    """The interview with the costs of --costs."""
    given = options["costs"]
    if given is None:
        return interview
    is_file = _is_file(given)
    try:
        text = Path(given).read_text("utf-8-sig") if is_file else given
        return interview.answer("costs", interview.parse_answer("costs", text))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{given} cannot be read as text.", field="--costs") from error
    except InvalidInputError as error:
        if not is_file and _looks_like_path(given):
            raise InvalidInputError(
                f"{given[:80]!r}: no such file, and no rule.",
                field="--costs",
                hint=rules_hint(interview.fingerprint.number_of_classes, interview.class_names),
            ) from error
        raise InvalidInputError(error.message, field="--costs", hint=error.hint) from error


def _is_file(text: str) -> bool:
    """Whether a text is the path of a file; a rule may be longer than any path."""
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False


def _looks_like_path(text: str) -> bool:
    """Whether a text is neither rows of numbers nor begins like a rule."""
    return any(sign.isalpha() for sign in text) and not text.strip().casefold().startswith(BEGINNINGS)


def _interview(options: dict[str, Any], names: tuple[str, ...] | None) -> Interview:
    """Ask the open questions, starting where the interview was left."""
    state: Path = options["state"] or Path(DEFAULT_STATE)
    screen = InterviewScreen(err=options["as_json"])
    kept = None if options["restart"] else load_interview(state)
    interview = _named(kept or start_interview(), names, options)
    proposals = _proposals(options, interview)
    interview = _with_costs(_taken_over(interview, proposals) if options["yes"] else interview, options)

    def save(current: Interview) -> None:
        write_text(state, current.to_json(), field="--state")
        if options["output"] is not None and current.stage == "complete":
            # Before the dialogue prints it: printing fails where the reader of the output has gone.
            write_text(options["output"], current.recommendation().to_json(), field="--output")

    save(interview)
    screen.welcome(state, interview if kept is not None else None)
    try:
        return Dialogue(screen, save, proposals).conduct(interview)
    except (InterviewSaved, click.Abort) as stopped:
        screen.say(f"\nYour answers are in {state}. Run the command again to go on.")
        raise click.exceptions.Exit(0 if isinstance(stopped, InterviewSaved) else 1) from None


def _open_questions(interview: Interview) -> Sequence[Question]:
    return next_questions(interview.fingerprint, choices=interview.choices)


def _complete(interview: Interview, options: dict[str, Any]) -> Recommendation:
    """The recommendation; nothing in it is open."""
    missing = _open_questions(interview)
    if missing and not interview.contradictions:
        raise InvalidInputError(
            f"these answers are missing: {', '.join(f'{item.id} ({item.field})' for item in missing)}.",
            field=str(options["answers"]),
            hint="Add them; others may follow from them. Without --answers, lifelong recommend asks and explains.",
        )
    recommendation = interview.recommendation()
    if recommendation.open_choices:
        named = "; ".join(
            f"{guide.guide} ({' or '.join(guide.options)})" for guide in recommendation.open_choices
        )
        raise InvalidInputError(
            f"these choices are open: {named}.",
            field=str(options["answers"]),
            hint="Add them, as in choices: {DG2.1: EC}. Without --answers, lifelong recommend shows the arguments.",
        )
    return recommendation


def _deliver(
    recommendation: Recommendation,
    interview: Interview,
    options: dict[str, Any],
    thresholds: list[AcceptanceThreshold],
) -> None:
    """Write the recommendation, attach it, and print it unless the dialogue did.

    Printing comes last, because it fails where the reader of the output has gone.
    """
    said: list[str] = []
    if options["output"] is not None:
        write_text(options["output"], recommendation.to_json(), field="--output")
        said.append(f"\nThe recommendation is in {options['output']}.")
    if options["attach"] is not None:
        said += attach(recommendation, options, thresholds)
    else:
        warn_of_costs(recommendation.fingerprint.costs)
    if not options["as_json"] and options["answers"] is not None:
        print_recommendation(terminal(), recommendation, interview.class_names)
    for line in said:
        echo(line, err=options["as_json"])
    if options["as_json"]:
        echo(recommendation.to_json())
