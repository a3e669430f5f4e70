"""`lifelong recommend`: an interview that turns a clinical problem into the metrics that fit it."""

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


@click.command(short_help="An interview: which metrics fit the problem.")
@click.option("--classes", help="Names of the classes in the order of the scores, separated by commas.")
@click.option(
    "--state",
    type=file,
    help=f"Where the interview is kept, to go on with it later. Default: {DEFAULT_STATE} in this folder.",
)
@click.option("--restart", is_flag=True, help="Begin anew; the answers in --state are replaced.")
@click.option("--answers", type=existing_file, help="YAML or JSON with all answers: nothing is asked.")
@click.option(
    "--data",
    "--labels",
    type=existing_file,
    help="npz with labels, and probabilities, logits, decisions or groups: it proposes answers for you to confirm.",
)
@click.option("--prevalence", help="With --data: how frequent each class is in use, e.g. 0.994,0.006.")
@click.option("--yes", is_flag=True, help="Take over what --data proposes without being asked.")
@click.option("--output", type=file, help="Write the recommendation here, as JSON.")
@click.option("--json", "as_json", is_flag=True, help="Print the recommendation as JSON.")
@click.option(
    "--attach", metavar="TASK", help="Judge the models of this task by the recommendation from now on."
)
@click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    metavar="LABEL=VALUE",
    help="With --attach: what a model has to reach, e.g. BA=0.8; repeatable. LABEL[CLASS]=VALUE for one class.",
)
def recommend(**options: Any) -> None:
    """Find the metrics that fit a clinical problem, in an interview of ten to twenty questions.

    Every answer is kept at once; run the command again to go on. Neither service nor database is needed, unless
    --attach.

    An answers file names items or fields, and choices by guide; an interview that was kept is one as well. It ends with
    status 1 and says what is missing where answers or choices are.

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
        raise click.UsageError("--answers asks nothing: there is no --state to go on with.")
    if options["thresholds"] and options["attach"] is None:
        raise click.UsageError("--threshold belongs to --attach.")
    for name in ("prevalence", "yes"):
        if options[name] and options["data"] is None:
            raise click.UsageError(f"--{name} belongs to --data.")
    if options["answers"] is not None and options["data"] is not None and not options["yes"]:
        raise click.UsageError(
            "--answers asks nothing: add --yes to take over what --data proposes where the file says nothing."
        )


def _class_names(options: dict[str, Any]) -> tuple[str, ...] | None:
    """The names of --classes, or of the task that it will be attached to."""
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
    """What --threshold asks of models, read before anybody is asked anything."""
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
    """Classes of other names, or in another order, would turn costs and classes of interest round."""
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
    """What --data says, for the classes that are known already."""
    if options["data"] is None:
        return {}
    return read_proposals(
        options["data"], interview.fingerprint.number_of_classes, parse_prevalence(options["prevalence"])
    )


def _taken_over(interview: "Interview", proposals: "Mapping[str, Proposal]") -> "Interview":
    """What data say, where nobody has said anything."""
    given = interview.fingerprint.answered_fields()
    return with_texts(
        interview, {field: item.value for field, item in proposals.items() if field not in given}
    )


def _interview(options: dict[str, Any], names: tuple[str, ...] | None) -> "Interview":
    """Ask what is still open, beginning where the interview was left."""
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
    """The recommendation, in which nothing is open."""
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
            f"these choices are yours: {named}.",
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
    """Print what nobody has seen yet, write, and attach."""
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
