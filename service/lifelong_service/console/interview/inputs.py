"""Inputs of the form for a question, and the answer in a form."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from lifelong_core.values.errors import InvalidInputError

if TYPE_CHECKING:
    from lifelong_core.design.interview.interview import Interview
    from lifelong_core.design.method.schema import Question

MOST_BOXES = 12
"""Largest number of classes with an input each; for more or an unknown number, a text area takes a copied table."""

MOST_TABLE_CLASSES = 20
"""Largest number of classes whose costs are a table of inputs, which scrolls within its box."""

MOST_SHOWN = 10_000
"""Largest number of values that a text area shows; a longer answer must be pasted again."""

MOST_HINTED = 1_000
"""Largest number of characters of the rules in the help of a text area."""

MOST_ORDERED = 100
"""Largest number of classes whose order is listed in the help of a text area."""

SHARE_HINT = "Write 0.95, or 95 %; decimals with a point."
NUMBER_HINT = "Write a number such as 0.5 or 20; decimals with a point."

RULE = "rule"
"""Name of the input for a rule or a table that fills in the costs."""

Typed = Mapping[str, Any]


@dataclass(frozen=True)
class Option:
    """One answer to pick."""

    value: str
    label: str
    meaning: str = ""
    is_chosen: bool = False
    has_focus: bool = False


@dataclass(frozen=True)
class Cell:
    """One input."""

    name: str
    text: str
    label: str = ""
    mode: Literal["numeric", "decimal", "text"] = "decimal"
    is_right: bool = False
    """the cost of a correct decision"""
    has_focus: bool = False
    is_wrong: bool = False


@dataclass(frozen=True)
class Entry:
    """The inputs of a question."""

    form: Literal["choices", "list", "line", "column", "table", "area"]
    options: tuple[Option, ...] = ()
    cells: tuple[tuple[Cell, ...], ...] = ()
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    hint: str = ""
    abstains: bool = False

    @property
    def is_group(self) -> bool:
        """Whether there are several inputs, which need a common name."""
        return self.form in ("choices", "column", "table")


def entry_of(
    question: "Question",
    interview: "Interview",
    *,
    typed: Typed | None = None,
    wrong: str | None = None,
    abstains: bool | None = None,
) -> Entry:
    """Return the inputs of a question, filled with its answer.

    Args:
        question: the question.
        interview: the interview, with its answers and the names of its classes.
        typed: a form with an error; None: no form was sent.
        wrong: name of the invalid input.
        abstains: whether the costs have a column for abstaining; None: as in the answer.
    """
    from lifelong_core.design.interview.views import possible_answers

    value = getattr(interview.fingerprint, question.field)
    labels = interview.class_labels
    has_boxes = 0 < len(labels) <= MOST_BOXES
    chosen = None if typed is None else typed.get("value")
    options = [
        Option(_token(answer.value), answer.label, answer.explanation)
        for answer in possible_answers(question, labels, interview.fingerprint.answers())
    ]
    match question.kind:
        case "class" if len(labels) > MOST_BOXES:
            known = "" if value is None else str(value)
            return _listed(options, known if chosen is None else str(chosen))
        case "choice" | "yes_no" | "class" if options:
            return _choices(options, _token(value) if chosen is None else chosen)
        case "class_values" if has_boxes:
            return _column(labels, value, typed, wrong)
        case "matrix" if 0 < len(labels) <= MOST_TABLE_CLASSES:
            return _table(labels, value, typed, wrong, abstains=abstains)
        case _:
            return _line(question, interview, value, chosen, is_wrong=wrong is not None)


def answer_of(question: "Question", interview: "Interview", form: Typed) -> object:
    """Return the answer in a form.

    Raises:
        InvalidInputError: an input is empty or cannot be read; `field` names it.
    """
    from lifelong_core.design.interview.class_names import decision_names

    labels = interview.class_labels
    has_boxes = 0 < len(labels) <= MOST_BOXES
    text = str(form.get("value", "")).strip()
    match question.kind:
        case "choice" | "yes_no":
            for answer in question.answers:
                if _token(answer.value) == text:
                    return answer.value
            raise InvalidInputError("choose one of the answers.", field="value")
        case "class" if labels:
            if text not in {str(index) for index in range(len(labels))}:
                raise InvalidInputError("choose one of the classes.", field="value")
            return int(text)
        case "class_values" if has_boxes:
            hint = SHARE_HINT if question.field == "target_prevalences" else NUMBER_HINT
            return [_number(form, f"value-{row}", label, hint) for row, label in enumerate(labels)]
        case "matrix" if 0 < len(labels) <= MOST_TABLE_CLASSES:
            columns = decision_names(labels, len(labels) + _has_abstention(form))
            return [
                [
                    _number(form, f"value-{row}-{column}", f"{decided}, where {true} is true", NUMBER_HINT)
                    for column, decided in enumerate(columns)
                ]
                for row, true in enumerate(labels)
            ]
        case _:
            if not text:
                raise InvalidInputError("there is no answer yet.", field="value", hint="Type one.")
            return interview.parse_answer(question.field, text)


def filled_costs(interview: "Interview", form: Typed) -> dict[str, str]:
    """Return the inputs of the table of costs, filled in by the rule or the pasted table of a form.

    Raises:
        InvalidInputError: the text is neither.
    """
    text = str(form.get(RULE, "")).strip()
    if not text:
        raise InvalidInputError("there is no rule and no table.", field=RULE, hint="Type or paste one.")
    costs: Any = interview.parse_answer("costs", text)
    return {
        f"value-{row}-{column}": _plain(cost)
        for row, costs_of_row in enumerate(costs)
        for column, cost in enumerate(costs_of_row)
    }


def number(text: str, *, field: str, what: str, hint: str = SHARE_HINT) -> float:
    """Return the number in one input.

    Args:
        text: the text of the input.
        field: name of the input.
        what: its meaning, for the error.
        hint: how to write it.

    Raises:
        InvalidInputError: it is no number.
    """
    from lifelong_core.design.interview.answer_texts import parse_number

    value = parse_number(text)
    if value is None:
        raise InvalidInputError(
            f"{what} cannot be read: {text[:40]!r}.",
            field=field,
            hint=hint,
        )
    return value


def _token(value: object) -> str:
    """Return an answer as the value of an input."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _choices(options: list[Option], chosen: object) -> Entry:
    """Return radio buttons; the chosen one, else the first, has the focus."""
    focus = next((option.value for option in options if option.value == chosen), options[0].value)
    return Entry(
        "choices",
        options=tuple(
            replace(option, is_chosen=option.value == chosen, has_focus=option.value == focus)
            for option in options
        ),
    )


def _listed(options: list[Option], chosen: str) -> Entry:
    """Return a drop-down list of many options."""
    listed = tuple(replace(option, is_chosen=option.value == chosen) for option in options)
    return Entry("list", options=listed, cells=((Cell("value", chosen, has_focus=True),),))


def _column(labels: tuple[str, ...], value: Any, typed: Typed | None, wrong: str | None) -> Entry:
    """Return inputs for one number for each class."""
    known = list(value or ())
    given = [_plain(entry) for entry in known] if len(known) == len(labels) else [""] * len(labels)
    cells = [(Cell(f"value-{row}", _text(typed, f"value-{row}", given[row])),) for row in range(len(labels))]
    return Entry("column", cells=_focused(cells, wrong), rows=labels)


def _table(
    labels: tuple[str, ...], value: Any, typed: Typed | None, wrong: str | None, *, abstains: bool | None
) -> Entry:
    """Return inputs for one number for each true class and each decision."""
    from lifelong_core.design.interview.class_names import decision_names

    classes = len(labels)
    rows = [list(row) for row in value or ()]
    fits = len(rows) == classes and len(rows[0]) in (classes, classes + 1)
    if abstains is None:
        abstains = _has_abstention(typed) if typed is not None else fits and len(rows[0]) > classes
    columns = decision_names(labels, classes + abstains)

    def known(row: int, column: int) -> str:
        if fits and column < len(rows[row]):
            return _plain(rows[row][column])
        return "0" if row == column else ""

    cells = [
        tuple(
            Cell(
                name=f"value-{row}-{column}",
                text=_text(typed, f"value-{row}-{column}", known(row, column)),
                label=f"true: {true}, decided: {decided}",
                is_right=row == column,
            )
            for column, decided in enumerate(columns)
        )
        for row, true in enumerate(labels)
    ]
    return Entry("table", cells=_focused(cells, wrong), rows=labels, columns=columns, abstains=abstains)


def _line(question: "Question", interview: "Interview", value: Any, chosen: Any, *, is_wrong: bool) -> Entry:
    """Return an input for one text, with several lines for many numbers."""
    from lifelong_core.design.interview.class_names import list_class_names
    from lifelong_core.design.interview.views import format_answer

    if question.kind in ("class_values", "matrix"):
        return _area(question, interview, value, chosen)
    known = "" if value is None else format_answer(question, value, class_names=interview.class_names)
    text = known if chosen is None else str(chosen)
    mode: Literal["numeric", "decimal", "text"] = "text"
    if question.kind in ("count", "number"):
        mode = "numeric" if question.kind == "count" else "decimal"
    hint = "A number such as 0.95, or 95 %." if question.kind == "number" else ""
    if question.kind == "count" and interview.class_names:
        hint = f"They have names: {list_class_names(interview.class_names)}. Another number drops these."
    cell = Cell("value", text, mode=mode, has_focus=True, is_wrong=is_wrong)
    return Entry("line", cells=((cell,),), hint=hint)


def _area(question: "Question", interview: "Interview", value: Any, chosen: Any) -> Entry:
    """Return a text area for lines of numbers."""
    from lifelong_core.design.interview.views import format_answer

    hint, known = _order(question, interview), ""
    if question.kind == "matrix" and len(value or ()) ** 2 > MOST_SHOWN:
        hint += f" The {len(value)} rows that are given are too many to be shown; paste all to replace them."
    elif value is not None:
        known = format_answer(question, value, class_names=interview.class_names)
    text = known if chosen is None else str(chosen)
    lines = text.replace("; ", "\n") if question.kind == "matrix" else text
    return Entry("area", cells=((Cell("value", lines, has_focus=True),),), hint=hint)


def _order(question: "Question", interview: "Interview") -> str:
    """Return the help for one number, or one row of numbers, for each class."""
    from lifelong_core.design.interview.cost_builders import rules_hint

    labels, names = interview.class_labels, interview.class_names
    count = f"{len(labels)} numbers, one for each class" if labels else "One number for each class"
    order = (
        f", in this order: {', '.join(names)}" if names and len(names) <= MOST_ORDERED else ", in their order"
    )
    if question.kind == "matrix":
        lines = f"A line for each true class; on it {count[0].lower()}{count[1:]} that is decided on{order}."
        return f"{lines} {rules_hint(len(labels) or None, names)[:MOST_HINTED]}"
    return f"{count}{order}, with blanks or lines between them."


def _focused(cells: list[tuple[Cell, ...]], wrong: str | None) -> tuple[tuple[Cell, ...], ...]:
    """Return the inputs with the focus on the invalid one, else on the first empty one, else on the first.

    None has the focus where the rule is wrong, which fills in the inputs.
    """
    every = [cell for row in cells for cell in row]
    empty = next((cell.name for cell in every if not cell.text), every[0].name)
    names = {cell.name for cell in every}
    focus = wrong if wrong in names or wrong == RULE else empty
    return tuple(
        tuple(replace(cell, has_focus=cell.name == focus, is_wrong=cell.name == wrong) for cell in row)
        for row in cells
    )


def _has_abstention(form: Typed) -> bool:
    """Whether the first row has one input more than there are rows."""
    rows = sum(1 for name in form if name.startswith("value-") and name.endswith("-0"))
    return f"value-0-{rows}" in form


def _number(form: Typed, name: str, what: str, hint: str) -> float:
    """Return the number in an input.

    Raises:
        InvalidInputError: it is empty, or no number.
    """
    text = str(form.get(name, "")).strip()
    if not text:
        raise InvalidInputError(f"the number for {what} is missing.", field=name, hint="Fill in every field.")
    return number(text, field=name, what=f"the number for {what}", hint=hint)


def _text(typed: Typed | None, name: str, known: str) -> str:
    return known if typed is None else str(typed.get(name, known))


def _plain(number: float) -> str:
    """Return a number in the notation of form inputs."""
    return f"{number:.12g}"
