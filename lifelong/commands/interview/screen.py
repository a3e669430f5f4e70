"""Output and input of the interview in the terminal; plain text if the output is no terminal."""

from collections.abc import Container, Iterable
from pathlib import Path

import click
import numpy as np
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lifelong.commands.common import only_warned
from lifelong.commands.interview.recommendation_text import print_recommendation
from lifelong.commands.results import terminal
from lifelong_core.configuration.plausibility import check_costs
from lifelong_core.design import Contradiction, Interview, Question, format_answer
from lifelong_core.design.interview.class_names import number_class_names
from lifelong_core.design.interview.cost_builders import Costs, rule_of
from lifelong_core.design.interview.cost_rules import needs_more_lines
from lifelong_core.design.interview.views import possible_answers, summarize_answer, view_answer
from lifelong_core.design.method.loader import load_method
from lifelong_core.design.recommendation.document import GuideOutcome
from lifelong_core.values.errors import InvalidInputError

LONGEST_SHOWN = 24
"""Characters of an answer that stands in a hint."""

MOST_NAMED = 50
"""Classes that are listed by name."""

MOST_CLASSES_TOLD = 3
"""With more classes, costs are not printed one by one."""

MOST_ROWS = 12
"""With more classes, costs are not printed row by row."""

COMMANDS = "b back  ? more  a answers  s stop"
SPELLED_OUT = "back  ? more  answers  stop"
"""Where a class has the name of a command."""

ACCEPTED_BY_YES = ("count", "number", "class_values", "matrix")
"""Kinds of questions to which `y` is no answer of its own, so that it accepts what is proposed."""

COSTS_OF_MANY = (
    "a rule: linear, quadratic, all 1 but a -> b = 50, blocks 1, 10: a | b, c; or a row for each true class,"
    " as a pasted table or line by line"
)
"""How to answer with the costs of three classes or more."""

POLARITY = {"pro": "+", "con": "-", "neutral": " "}

HINTS = {
    "yes_no": "y/n",
    "count": "a number, or the names: benign, malignant",
    "number": "a number, such as 0.1 or 10 %",
    "class": "a class",
    "class_values": "a number for each class",
    "matrix": "a row for each true class: 0, 1; 9, 0; or a rule: 50:1, all 1 but 1 -> 0 = 50; or a pasted table",
    "text": "a word",
}


def warn_of_costs(costs: Costs | None) -> None:
    """Print a warning where costs would be refused by a task; they fit the classes."""
    if costs is not None:
        with only_warned(hint="A task takes them only with a reason: --attach TASK --force-because REASON."):
            check_costs(np.array(costs, dtype=float))


class InterviewScreen:
    """Prints questions and reads typed lines."""

    def __init__(self, *, err: bool) -> None:
        self._err = err
        self._console = terminal(err=err)

    def welcome(self, state: Path, kept: Interview | None) -> None:
        """Print where answers are stored, and whether an interview is continued."""
        if kept is None:
            self.say(
                f"Each answer is saved in {state} at once: stop at any time, and run this again to continue."
            )
        else:
            answered = kept.progress.answered
            questions = "1 question is" if answered == 1 else f"{answered} questions are"
            self.say(f"Continuing {state}, where {questions} answered; --restart starts a new interview.")

    def read(self, hint: str, *, spelled_out: bool = False) -> str:
        """Return a typed line without surrounding blanks.

        Args:
            hint: how to answer.
            spelled_out: whether commands have to be typed as words.

        Raises:
            click.Abort: there is no more input, or Ctrl-C.
        """
        commands = SPELLED_OUT if spelled_out else COMMANDS
        line = f"{hint}  |  {commands}"
        self.say(line if len(line) <= self._console.width else f"{hint}\n{commands}", "dim")
        return self._line("> ").strip()

    def read_table(self, first: str, classes: int | None) -> str:
        """Return a first line with the further lines of its table; the line alone where it begins none.

        An empty line ends a table that is not complete.

        Raises:
            click.Abort: there is no more input, or Ctrl-C.
        """
        lines = [line for line in first.splitlines() if line.strip()]
        if needs_more_lines(lines, classes):
            self.say(
                f"Row by row, one line for each of {classes} classes; an empty line ends the table.", "dim"
            )
        while needs_more_lines(lines, classes):
            line = self._line(". ")
            if not line.strip():
                break
            lines += [part for part in line.splitlines() if part.strip()]
        return "\n".join(lines)

    def _line(self, sign: str) -> str:
        text = click.style(sign, fg="cyan", bold=True)
        return str(click.prompt(text, default="", show_default=False, prompt_suffix="", err=self._err))

    def hint(self, interview: Interview, question: Question) -> str:
        """How to answer a question."""
        if question.kind == "matrix" and (interview.fingerprint.number_of_classes or 0) > 2:
            return COSTS_OF_MANY
        if question.kind != "choice":
            return HINTS[question.kind]
        return f"1-{len(question.offered(interview.fingerprint.answers()))}"

    def enter(
        self, interview: Interview, question: Question, suggested: object, *, is_proposal: bool = False
    ) -> str:
        """The answer that Enter gives; `is_proposal`: data or other answers suggest it."""
        shown = _shown(interview, question, suggested)
        keys = "Enter accepts the proposal" if is_proposal else "Enter"
        if question.kind in ACCEPTED_BY_YES:
            keys = "Enter or y"
        return f"{keys}: {shown}" if len(shown) <= LONGEST_SHOWN else f"{keys}: as above"

    def say(self, text: str, style: str = "") -> None:
        """Print a sentence without interpreting markup."""
        self._console.print(Text(text, style=style))

    def problem(self, error: InvalidInputError) -> None:
        """Print the error of an answer, with its hint."""
        message = error.message[0].upper() + error.message[1:]
        self.say(f"{message} {error.hint or ''}".rstrip(), "yellow")

    def question(
        self, interview: Interview, question: Question, suggested: object, reason: str | None
    ) -> None:
        """Print a question with its example, its pitfall and the answers that it offers."""
        progress = interview.progress
        at_least = "" if progress.certain == progress.possible else "at least "
        done = f"{progress.answered} answered, {at_least}{progress.certain} to go"
        self._console.print()
        title = f"{question.id}  ·  {done}"
        if len(title) + 2 <= self._console.width:
            self._console.rule(Text(title), align="left", style="dim")
        else:
            self.say(title, "dim")
        self.say(question.question, "bold")
        rows = [("Example", question.example), ("Why it matters", question.pitfall)]
        names = interview.class_names
        if names is not None and question.kind in ("class", "class_values", "matrix"):
            rows.append(("Classes", number_class_names(names)))
        if suggested is not None:
            shown = _shown(interview, question, suggested)
            rows.append(("So far", shown) if reason is None else ("Proposed", f"{shown} - {reason}"))
        self._rows(rows)
        if question.kind in ("choice", "yes_no"):
            options = possible_answers(question, interview.class_labels, interview.fingerprint.answers())
            self._options((option.label, option.explanation) for option in options)

    def show_class_names(self, interview: Interview) -> None:
        """Print the names of the classes as they were read, in the order of the scores."""
        self.say(f"  = {number_class_names(interview.class_labels)}", "green")

    def understood(self, interview: Interview, question: Question) -> None:
        """Print an answer as it was read, unless the typed text shows it."""
        value = getattr(interview.fingerprint, question.field)
        if value is None or question.kind in ("yes_no", "count", "text"):
            return
        called = interview.class_labels
        if question.field == "costs" and not interview.contradictions:
            warn_of_costs(value)
        if question.kind == "matrix" and len(value) > MOST_CLASSES_TOLD:
            self._many_costs(interview, question, value)
            return
        self.say(f"  = {format_answer(question, value, class_names=interview.class_names)}", "green")
        is_told = question.kind == "matrix" and len(value) == len(called)
        if is_told and len(value[0]) >= len(called):
            self._rows(
                ("", f"{called[true]} taken for {called[decided]} costs {value[true][decided]:g}")
                for true in range(len(called))
                for decided in range(len(called))
                if decided != true
            )

    def _many_costs(self, interview: Interview, question: Question, value: Costs) -> None:
        """Print costs as a rule, else as a row for each class, else only how many they are."""
        called = interview.class_labels
        if rule_of(value, interview.class_names) is None and len(value) == len(called) <= MOST_ROWS:
            self.say("  = costs of each true class, in the order of the decisions:", "green")
            self._rows(
                (name, ", ".join(f"{cost:g}" for cost in row))
                for name, row in zip(called, value, strict=True)
            )
        else:
            said = summarize_answer(question, value, class_names=interview.class_names)
            self.say(f"  = {said}", "green")

    def explain(self, question: Question | None) -> None:
        """Print the details of a question, and the commands."""
        if question is not None:
            method = load_method()
            follow = [method.question(field).question for field in question.follow_ups]
            about = {
                "Item": f"{question.id}, {question.name}",
                "Asked": question.asked_when,
                "May lead to": " ".join(follow),
                "Source": question.source,
            }
            self._rows((label, text) for label, text in about.items() if text)
        self._rows(
            [
                ("b", "withdraws the last answer and asks again"),
                ("a", "lists the answers so far"),
                (
                    "c FP2.6",
                    "asks a question again: name its item, shown above each question and in the list",
                ),
                ("s", "saves and quits; so does Ctrl-C"),
            ]
        )

    def answers(self, interview: Interview, among: Container[str] | None = None) -> None:
        """Print the answers and choices so far; `among`: only these."""
        items = (*interview.fingerprint.answered_fields(), *interview.choices)
        views = [view_answer(interview, item) for item in items if among is None or item in among]
        rows = [
            (view.source_item, view.text)
            if view.is_choice
            else (
                view.source_item,
                f"{view.name}: {_names_of_count(interview, view.item, view.value) or view.text}",
            )
            for view in views
        ]
        self._rows(rows or [("", "Nothing yet.")])

    def recommendation(self, interview: Interview) -> None:
        """Print the recommendation."""
        print_recommendation(self._console, interview.recommendation(), interview.class_names)

    def contradiction(self, interview: Interview, contradiction: Contradiction) -> None:
        """Print answers that contradict each other, and the resolutions."""
        self._console.print()
        self._console.rule("These answers contradict each other", align="left", style="yellow")
        self.say(contradiction.explanation, "bold")
        self.answers(interview, contradiction.answers)
        self.say("How do you resolve it?")
        self._options((resolution.text, "") for resolution in contradiction.resolutions)

    def choice(self, guide: GuideOutcome) -> None:
        """Print a guide that needs a choice, with the arguments about each option."""
        self._console.print()
        self._console.rule(f"{guide.guide}  ·  your choice", align="left", style="dim")
        self.say(guide.title, "bold")
        self.say(guide.why)
        for number, option in enumerate(guide.options, start=1):
            marks = ["default"] if option == guide.default else []
            marks += ["chosen so far"] if option in guide.chosen else []
            self.say(f"  {number}  {option}  {', '.join(marks)}".rstrip(), "bold")
            self._rows(
                [(POLARITY[argument.polarity], argument.text) for argument in guide.arguments_about(option)],
                indent=5,
            )
        if guide.several:
            self.say("Several are possible: 1, 3")

    def _rows(self, rows: Iterable[tuple[str, str]], indent: int = 2) -> None:
        self._grid(((label, text) for label, text in rows), ("dim", ""), indent)

    def _options(self, options: Iterable[tuple[str, str]]) -> None:
        numbered = ((str(number), *option) for number, option in enumerate(options, start=1))
        self._grid(numbered, ("cyan", "bold", ""), 2)

    def _grid(self, rows: Iterable[tuple[str, ...]], styles: tuple[str, ...], indent: int) -> None:
        grid = Table.grid(padding=(0, 2))
        for style in styles:
            grid.add_column(style=style, overflow="fold")
        for row in rows:
            cells: list[RenderableType] = [Text(cell) for cell in row]
            grid.add_row(*cells)
        self._console.print(Padding(grid, (0, 0, 0, indent)))


def _shown(interview: Interview, question: Question, value: object) -> str:
    """An answer as text; the number of classes is shown by their names."""
    names = _names_of_count(interview, question.field, value)
    return names or summarize_answer(question, value, class_names=interview.class_names)


def _names_of_count(interview: Interview, field: str, value: object) -> str | None:
    """The names of the classes in place of their number; None for other fields, and for classes without names."""
    names = interview.class_names
    if field != "number_of_classes" or names is None or value != len(names):
        return None
    return ", ".join(names) if len(names) <= MOST_NAMED else f"{len(names)}, with names"
