"""Files of `lifelong recommend`: the state of an interview, answers and labelled data."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from lifelong.commands.cycles.inputs import name_file_in_errors
from lifelong.commands.validation.labelled_files import read_outputs, with_indices
from lifelong_core.design import Interview, Proposal, Question, propose_answers, start_interview
from lifelong_core.design.interview.answer_texts import parse_number
from lifelong_core.design.method.loader import load_method
from lifelong_core.design.problem_fingerprint import FIELDS, by_field
from lifelong_core.values.errors import InvalidInputError

DEFAULT_STATE = "recommendation-interview.json"
"""In the working directory, unless --state names another file."""


def load_interview(path: Path) -> Interview | None:
    """The interview in a file; None if there is no such file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read ({error.strerror}).", field="--state") from error
    with name_file_in_errors(path, InvalidInputError):
        return Interview.from_json(content)


def read_answers(path: Path, class_names: Sequence[str] | None) -> Interview:
    """The interview of an answers file, which holds answers by field or item, choices and class names.

    Class names in the file take precedence over `class_names`.

    The file is YAML or JSON: items with their answers, or `answers`, `choices` and `class_names`; a fingerprint, an
    interview or a recommendation is accepted as well. An answer is a value, or its typed form.
    """
    try:
        document: Any = yaml.safe_load(path.read_bytes())
    except (OSError, yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f" (line {mark.line + 1}: {getattr(error, 'problem', None)})"
        raise InvalidInputError(
            f"{path} is no readable YAML or JSON file{where}.", field="--answers"
        ) from error
    if not isinstance(document, Mapping):
        raise InvalidInputError(
            f"{path} holds no answers.", field="--answers", hint="For example: FP2.6: argmax"
        )
    with name_file_in_errors(path, InvalidInputError):
        names, answers = _parts({str(key): value for key, value in document.items()})
        return with_texts(start_interview(class_names=names or class_names), answers)


def _parts(document: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Class names, and all answers and choices."""
    names = document.pop("class_names", None)
    for part, example in (("answers", "FP2.6: argmax"), ("choices", "DG2.1: EC")):
        if not isinstance(document.get(part) or {}, Mapping):
            raise InvalidInputError(
                "expected names with their values.", field=part, hint=f"For example {part}: {{{example}}}."
            )
    inner = next((key for key in ("fingerprint", "answers") if key in document), None)
    answers = dict(document if inner is None else document[inner] or {})
    answers.pop("schema_version", None)
    if inner is not None:
        answers |= document.get("choices") or {}
    return names, {str(item): value for item, value in answers.items() if value is not None}


def with_texts(interview: Interview, answers: Mapping[str, Any]) -> Interview:
    """The interview with answers as values or as typed text, and with choices."""
    method = load_method()
    stated = by_field({k: v for k, v in answers.items() if not method.has_guide(k)}).get("number_of_classes")
    count = stated if isinstance(stated, int) else None
    given: dict[str, object] = {item: value for item, value in answers.items() if method.has_guide(item)}
    fields = by_field({k: answers[k] for k in answers if k not in given})
    read: dict[str, object] = {}
    for field in sorted(fields, key=FIELDS.index):  # the class of interest before the costs that depend on it
        text, read[field] = _as_text(method.question(field), fields[field]), fields[field]
        if text is not None:
            target = _index(read.get("target_class"))
            read[field] = interview.parse_answer(field, text, classes=count, target_class=target)
    return interview.with_answers(given | {field: read[field] for field in fields})


def _index(value: object) -> int | None:
    """The class of interest, where it is one."""
    return value if isinstance(value, int) else None


def _as_text(question: Question, value: object) -> str | None:
    """The typed form of a text, or of a mapping from classes; None for other values.

    YAML reads the number of an option as a number, and the option `no` as false.
    """
    if isinstance(value, str):
        return value
    if question.kind == "choice" and isinstance(value, bool):
        return "yes" if value else "no"
    if question.kind in ("choice", "yes_no") and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {number}" for name, number in value.items())
    return None


def parse_prevalence(text: str | None) -> list[float] | None:
    """The shares of --prevalence: numbers or percentages."""
    if text is None:
        return None
    shares = [parse_number(part) for part in text.split(",")]
    known = [share for share in shares if share is not None]
    if len(known) < len(shares):
        raise InvalidInputError(
            "expected numbers, separated by commas.",
            field="--prevalence",
            hint="For example 0.994,0.006, or 99.4 %,0.6 %.",
        )
    return known


def read_proposals(
    path: Path, classes: int | None, class_names: Sequence[str] | None, prevalence: Sequence[float] | None
) -> dict[str, Proposal]:
    """The answers that the labelled data of an npz file suggest, by field.

    Args:
        path: the file.
        classes: number of classes; None: as in the file.
        class_names: of the task, by which labels are read; None: those of the file.
        prevalence: share of each class in use.
    """
    data = read_outputs(path)
    try:
        with name_file_in_errors(path, InvalidInputError):
            data = with_indices(data, class_names or data.class_names)
            found = propose_answers(
                data.labels,
                classes=classes,
                probabilities=data.scores,
                decisions=data.decisions,
                groups=data.groups,
                target_prevalence=prevalence,
            )
    except InvalidInputError as error:
        if error.field != "target_prevalence":
            raise
        raise InvalidInputError(error.message, field="--prevalence", hint=error.hint) from error
    return {proposal.field: proposal for proposal in found}
