"""`lifelong recommend`: an interview that turns a clinical problem into the metrics that fit it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lifelong.commands.adaptation_inputs import parse_numbers
from lifelong.commands.common import actor, open_store
from lifelong.commands.interview_files import (
    DEFAULT_STATE,
    load_interview,
    read_answers,
    read_proposals,
    with_texts,
    write_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lifelong_core.design import Interview, Proposal, Recommendation

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

    \b
    An answers file names items or fields, and choices by guide; an interview that was kept is one as well:
      class_names: [benign, malignant]
      answers: {FP5.1: yes, FP2.6: argmax, FP4.3: yes, grouping_variable: patient, ...}
      choices: {DG2.1: EC}
    It exits with 1 and says what is missing where answers or choices are.
    """
    _check(options)
    names = _class_names(options)
    proposals = _proposals(options)
    if options["answers"] is not None:
        interview = _named(read_answers(options["answers"], names), names)
        interview = _taken_over(interview, proposals) if options["yes"] else interview
    else:
        interview = _interview(options, names, proposals)
    recommendation = _complete(interview)
    _deliver(recommendation, interview, options)


def _check(options: dict[str, Any]) -> None:
    if options["answers"] is not None and (options["state"] is not None or options["restart"]):
        raise click.UsageError("--answers asks nothing: there is no --state to go on with.")
    if options["thresholds"] and options["attach"] is None:
        raise click.UsageError("--threshold belongs to --attach.")
    for name in ("prevalence", "yes"):
        if options[name] and options["data"] is None:
            raise click.UsageError(f"--{name} belongs to --data.")


def _class_names(options: dict[str, Any]) -> tuple[str, ...] | None:
    """The names of --classes, or of the task that it will be attached to."""
    given = None
    if options["classes"] is not None:
        given = tuple(name.strip() for name in options["classes"].split(","))
    if options["attach"] is None:
        return given
    with open_store() as store:
        names = tuple(store.tasks.get(options["attach"]).class_names)
    _refuse_others(given, names)
    return names


def _named(interview: "Interview", names: tuple[str, ...] | None) -> "Interview":
    from lifelong_core.errors import InvalidInputError

    if names is None or names == interview.class_names:
        return interview
    _refuse_others(interview.class_names, names)
    count = interview.fingerprint.number_of_classes
    if count not in (None, len(names)):
        raise InvalidInputError(
            f"there are {len(names)} names, but the answers say {count} classes.", field="--classes"
        )
    return interview.named(names)


def _refuse_others(given: tuple[str, ...] | None, names: tuple[str, ...]) -> None:
    """Classes of other names, or in another order, would turn costs and classes of interest round."""
    from lifelong_core.errors import InvalidInputError

    if given not in (None, names):
        raise InvalidInputError(
            f"the classes are {', '.join(given)} here, and {', '.join(names)} there.",
            field="--classes",
            mend="Use the same names in the same order, or --restart.",
        )


def _proposals(options: dict[str, Any]) -> "Mapping[str, Proposal]":
    if options["data"] is None:
        return {}
    return read_proposals(options["data"], parse_numbers(options["prevalence"], field="--prevalence"))


def _taken_over(interview: "Interview", proposals: "Mapping[str, Proposal]") -> "Interview":
    """What data say, where nobody has said anything."""
    given = interview.fingerprint.given()
    return with_texts(
        interview, {field: item.value for field, item in proposals.items() if field not in given}
    )


def _interview(
    options: dict[str, Any], names: tuple[str, ...] | None, proposals: "Mapping[str, Proposal]"
) -> "Interview":
    """Ask what is still open, beginning where the interview was left."""
    from lifelong.commands.interview_dialogue import Dialogue, Saved
    from lifelong.commands.interview_screen import InterviewScreen
    from lifelong_core.design import start_interview

    state: Path = options["state"] or Path(DEFAULT_STATE)
    screen = InterviewScreen(err=options["as_json"])
    kept = None if options["restart"] else load_interview(state)
    interview = _named(kept or start_interview(), names)
    interview = _taken_over(interview, proposals) if options["yes"] else interview
    screen.welcome(state, interview if kept is not None else None)

    def save(current: "Interview") -> None:
        write_text(state, current.to_json(), field="--state")

    save(interview)
    try:
        return Dialogue(screen, save, proposals).conduct(interview)
    except (Saved, click.Abort) as stopped:
        screen.say(f"\nYour answers are in {state}. Run the command again to go on.")
        raise click.exceptions.Exit(0 if isinstance(stopped, Saved) else 1) from None


def _complete(interview: "Interview") -> "Recommendation":
    """The recommendation, in which nothing is open."""
    from lifelong_core.errors import InvalidInputError

    recommendation = interview.recommendation()
    if recommendation.open_choices:
        named = "; ".join(
            f"{guide.guide} ({' or '.join(guide.options)})" for guide in recommendation.open_choices
        )
        raise InvalidInputError(
            f"these choices are yours: {named}.",
            field="choices",
            mend="Leave out --answers to see the arguments.",
        )
    return recommendation


def _deliver(recommendation: "Recommendation", interview: "Interview", options: dict[str, Any]) -> None:
    """Print what nobody has seen yet, write, and attach."""
    from lifelong.commands.interview_screen import terminal
    from lifelong.commands.recommendation_text import print_recommendation

    if not options["as_json"] and options["answers"] is not None:
        print_recommendation(terminal(), recommendation, interview.class_names)
    if options["output"] is not None:
        write_text(options["output"], recommendation.to_json(), field="--output")
        click.echo(f"\nThe recommendation is in {options['output']}.", err=options["as_json"])
    if options["attach"] is not None:
        _attach(recommendation, interview, options)
    if options["as_json"]:
        click.echo(recommendation.to_json())


def _attach(recommendation: "Recommendation", interview: "Interview", options: dict[str, Any]) -> None:
    from lifelong.commands.thresholds import parse_threshold

    thresholds = [parse_threshold(text, interview.class_names) for text in options["thresholds"]]
    with open_store() as store:
        attached = store.recommendations.attach(
            options["attach"], recommendation, thresholds=thresholds, actor=actor()
        )
    said = f"Recommendation {attached.version} is attached to {options['attach']}"
    limits = f" with {len(thresholds)} thresholds" if thresholds else ""
    click.echo(f"{said}{limits}.", err=options["as_json"])
