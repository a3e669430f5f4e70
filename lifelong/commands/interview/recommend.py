"""`lifelong recommend`: an interview that leads from a clinical problem to the metrics that fit it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lifelong.commands.common import actor, open_store
from lifelong.commands.interview.files import (
    DEFAULT_STATE,
    load_interview,
    parse_prevalence,
    read_answers,
    read_proposals,
    with_texts,
    write_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lifelong_core.design import AcceptanceThreshold, Interview, Proposal, Recommendation

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
@click.option("--output", type=file, help="Write the recommendation here, as JSON.")
@click.option("--json", "as_json", is_flag=True, help="Print the recommendation as JSON.")
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
        interview = _taken_over(interview, proposals) if options["yes"] else interview
    else:
        interview = _interview(options, names)
    recommendation = _complete(interview, options)
    _deliver(recommendation, interview, options, thresholds)


def _check(options: dict[str, Any]) -> None:
    if options["answers"] is not None and (options["state"] is not None or options["restart"]):
        raise click.UsageError("--answers asks nothing, so there is no --state to continue.")
    if options["thresholds"] and options["attach"] is None:
        raise click.UsageError("--threshold belongs to --attach.")
    for name in ("prevalence", "yes"):
        if options[name] and options["data"] is None:
            raise click.UsageError(f"--{name} belongs to --data.")
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
    with open_store() as store:
        names = tuple(store.tasks.get(options["attach"]).class_names)
    _refuse_others(given, names, "--classes", options)
    return names


def _thresholds(options: dict[str, Any], names: tuple[str, ...] | None) -> "list[AcceptanceThreshold]":
    """The acceptance thresholds of --threshold, read before the interview."""
    from lifelong.commands.validation.thresholds import parse_threshold

    return [parse_threshold(text, names) for text in options["thresholds"]]


def _named(interview: "Interview", names: tuple[str, ...] | None, options: dict[str, Any]) -> "Interview":
    from lifelong_core.errors import InvalidInputError

    if names is None or names == interview.class_names:
        return interview
    _refuse_others(interview.class_names, names, "the answers", options)
    count = interview.fingerprint.number_of_classes
    if count not in (None, len(names)):
        raise InvalidInputError(
            f"there are {len(names)} names, but the answers say {count} classes.", field="--classes"
        )
    try:
        return interview.with_class_names(names)
    except InvalidInputError as error:
        raise InvalidInputError(error.message, field="--classes", hint=error.hint) from error


def _refuse_others(
    given: tuple[str, ...] | None, names: tuple[str, ...], place: str, options: dict[str, Any]
) -> None:
    """Refuse classes with other names or in another order: costs and target classes would be swapped."""
    from lifelong_core.errors import InvalidInputError

    if given in (None, names):
        return
    other = "--classes" if options["attach"] is None else f"the task {options['attach']}"
    is_kept = options["answers"] is None and place != "--classes"
    raise InvalidInputError(
        f"the classes are {', '.join(given)} in {place}, and {', '.join(names)} in {other}.",
        field="--classes",
        hint=f"Use the same names in the same order{', or --restart' if is_kept else ''}.",
    )


def _proposals(options: dict[str, Any], interview: "Interview") -> "Mapping[str, Proposal]":
    """The proposals of --data for the classes that are known already."""
    if options["data"] is None:
        return {}
    return read_proposals(
        options["data"], interview.fingerprint.number_of_classes, parse_prevalence(options["prevalence"])
    )


def _taken_over(interview: "Interview", proposals: "Mapping[str, Proposal]") -> "Interview":
    """The interview with the proposals for questions without an answer."""
    given = interview.fingerprint.answered_fields()
    return with_texts(
        interview, {field: item.value for field, item in proposals.items() if field not in given}
    )


def _interview(options: dict[str, Any], names: tuple[str, ...] | None) -> "Interview":
    """Ask the open questions, starting where the interview was left."""
    from lifelong.commands.interview.dialogue import Dialogue, InterviewSaved
    from lifelong.commands.interview.screen import InterviewScreen
    from lifelong_core.design import start_interview

    state: Path = options["state"] or Path(DEFAULT_STATE)
    screen = InterviewScreen(err=options["as_json"])
    kept = None if options["restart"] else load_interview(state)
    interview = _named(kept or start_interview(), names, options)
    proposals = _proposals(options, interview)
    interview = _taken_over(interview, proposals) if options["yes"] else interview
    screen.welcome(state, interview if kept is not None else None)

    def save(current: "Interview") -> None:
        write_text(state, current.to_json(), field="--state")

    save(interview)
    try:
        return Dialogue(screen, save, proposals).conduct(interview)
    except (InterviewSaved, click.Abort) as stopped:
        screen.say(f"\nYour answers are in {state}. Run the command again to go on.")
        raise click.exceptions.Exit(0 if isinstance(stopped, InterviewSaved) else 1) from None


def _complete(interview: "Interview", options: dict[str, Any]) -> "Recommendation":
    """The recommendation; nothing in it is open."""
    from lifelong_core.design import next_questions
    from lifelong_core.errors import InvalidInputError

    missing = next_questions(interview.fingerprint, choices=interview.choices)
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
    recommendation: "Recommendation",
    interview: "Interview",
    options: dict[str, Any],
    thresholds: "list[AcceptanceThreshold]",
) -> None:
    """Print the recommendation unless the dialogue did, write it, and attach it."""
    from lifelong.commands.interview.recommendation_text import print_recommendation
    from lifelong.commands.interview.screen import terminal

    if not options["as_json"] and options["answers"] is not None:
        print_recommendation(terminal(), recommendation, interview.class_names)
    if options["output"] is not None:
        write_text(options["output"], recommendation.to_json(), field="--output")
        click.echo(f"\nThe recommendation is in {options['output']}.", err=options["as_json"])
    if options["attach"] is not None:
        _attach(recommendation, options, thresholds)
    if options["as_json"]:
        click.echo(recommendation.to_json())


def _attach(
    recommendation: "Recommendation", options: dict[str, Any], thresholds: "list[AcceptanceThreshold]"
) -> None:
    with open_store() as store:
        attached = store.recommendations.attach(
            options["attach"], recommendation, thresholds=thresholds, actor=actor()
        )
    said = f"Recommendation {attached.version} is attached to {options['attach']}"
    count = f"{len(thresholds)} threshold{'s' if len(thresholds) > 1 else ''}"
    limits = f" with {count}" if thresholds else ""
    click.echo(f"{said}{limits}.", err=options["as_json"])
