"""State of an interview: answers, choices, the next question and the way back."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Self, TypeAlias, cast

from pydantic import field_validator, model_validator

from lifelong_core.design.interview.answer_texts import parse_answer
from lifelong_core.design.interview.class_names import reorder_class_answers
from lifelong_core.design.interview.next_questions import next_questions
from lifelong_core.design.interview.proposals import Proposal, propose_costs
from lifelong_core.design.method.loader import load_method
from lifelong_core.design.method.schema import Question, Resolution
from lifelong_core.design.problem_fingerprint import MOST_CLASSES, Name, ProblemFingerprint, by_field
from lifelong_core.design.recommendation.contradictions import Contradiction, contradictions
from lifelong_core.design.recommendation.document import GuideOutcome, Recommendation
from lifelong_core.design.recommendation.progress import Progress, progress_of
from lifelong_core.design.recommendation.recommend import check_choices, forbidden_choices, recommend
from lifelong_core.values.documents import FrozenDocument
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.validation_errors import format_value

SCHEMA_VERSION = 1

Stage: TypeAlias = Literal["questions", "contradictions", "choices", "complete"]
"""The next thing to do: answer a question, resolve a contradiction, choose between metrics, or nothing."""


class Interview(FrozenDocument):
    """State of an interview, stored as JSON; each change returns a new value.

    Answers that became unnecessary by a later change stay and affect nothing.

    Examples:
        >>> interview = start_interview(class_names=["benign", "malignant"])
        >>> interview.question.question
        'Does the algorithm give a score for every class, or only its decision?'
        >>> interview = interview.answer("FP5.1", True).answer("FP2.6", "argmax")
        >>> interview.history, interview.stage
        (('class_scores_available', 'decision_rule'), 'questions')
        >>> interview.back().question.field
        'decision_rule'
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    fingerprint: ProblemFingerprint = ProblemFingerprint()
    choices: Mapping[str, tuple[str, ...]] = {}
    """guide -> options that a person chose, in the order of the method"""
    history: tuple[str, ...] = ()
    """fields and guides, each once, in the order of their latest answers"""
    class_names: tuple[Name, ...] | None = None
    """one for each class; they answer how many classes there are"""

    @field_validator("choices")
    @classmethod
    def _offered(cls, choices: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
        checked = check_choices(load_method(), choices)
        return {guide.id: checked[guide.id] for guide in load_method().guides if guide.id in checked}

    @field_validator("class_names")
    @classmethod
    def _different(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if names is None else _checked_names(names)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        known = {*self.fingerprint.answered_fields(), *self.choices}
        if len(set(self.history)) < len(self.history) or not set(self.history) <= known:
            raise InvalidInputError("it must name what was answered or decided, each once.", field="history")
        names, count = self.class_names, self.fingerprint.number_of_classes
        if names is not None and len(names) != count:
            raise InvalidInputError(f"{len(names)} names for {count} classes.", field="class_names")
        return self

    def answer(self, item: str, value: object) -> Self:
        """Return the interview with an answer added, changed or withdrawn.

        Args:
            item: the field, the item of the source (FP2.6), or a guide (DG2.1).
            value: the answer; None withdraws it.

        Raises:
            InvalidInputError: no such item, or a value that it cannot have.
        """
        return self.with_answers({item: value})

    def with_answers(self, answers: Mapping[str, object]) -> Self:
        """Return the interview with several answers changed, those of a `Resolution` for instance; see `answer`.

        Another number of classes than there are names drops the names, and the class of interest with them.

        Raises:
            InvalidInputError: no such item, or a value that it cannot have.
        """
        has_guide = load_method().has_guide
        fields = by_field({item: value for item, value in answers.items() if not has_guide(item)})
        fingerprint = self.fingerprint.with_answers(fields)
        decided = {item: value for item, value in answers.items() if has_guide(item)}
        given = {**fields, **decided}
        choices = {name: value for name, value in {**self.choices, **decided}.items() if value is not None}
        names = self.class_names
        if names is not None and len(names) == fingerprint.number_of_classes:
            given.pop("number_of_classes", None)  # the names answer it
        elif names is not None:
            names = None
            if "target_class" not in given:  # it was one of the names
                fingerprint = fingerprint.with_answer("target_class", None)
        return self._changed(
            fingerprint,
            check_choices(load_method(), cast("Any", choices)),
            (*(name for name in self.history if name not in given), *given),
            names,
        )

    def with_class_names(self, class_names: Sequence[str]) -> Self:
        """Return the interview with names of the classes, which answer how many there are.

        Answers about single classes follow the names to other places.

        Raises:
            InvalidInputError: too few or too many names, equal names, or unprintable characters.
        """
        names = _checked_names(class_names)
        fingerprint = self.fingerprint.with_answer("number_of_classes", len(names))
        if self.class_names is not None:
            fingerprint = fingerprint.with_answers(
                reorder_class_answers(fingerprint, self.class_names, names)
            )
        history = tuple(name for name in self.history if name != "number_of_classes")
        return self._changed(fingerprint, self.choices, history, names)

    def parse_answer(
        self,
        field: str,
        text: str,
        *,
        as_shown: bool = False,
        classes: int | None = None,
        target_class: int | None = None,
    ) -> object:
        """Return the value of a typed answer, with the names of these classes; see `answer_texts.parse_answer`.

        Args:
            field: the field of the fingerprint.
            text: what was typed.
            as_shown: whether only the offered options are read and numbered, as the terminal shows them.
            classes: number of classes; None: as answered.
            target_class: the class that must be found; None: as answered.

        Raises:
            InvalidInputError: the text is no answer to this question.
        """
        counted = self.fingerprint
        if classes is not None:
            counted = counted.with_answer("number_of_classes", classes)
        return parse_answer(
            load_method().question(field),
            text,
            class_names=self.class_names,
            classes=counted.number_of_classes,
            answers=counted.answers(),
            is_document=not as_shown,
            target_class=self.fingerprint.target_class if target_class is None else target_class,
        )

    def choose(self, guide: str, options: str | Sequence[str] | None) -> Self:
        """Return the interview with the options that a person chose in a guide; None withdraws the choice.

        Raises:
            InvalidInputError: no such guide or option, or several where only one is possible.
        """
        if options is not None or not load_method().has_guide(guide):
            check_choices(load_method(), {guide: options or ()})
        return self.with_answers({guide: options})

    def back(self) -> Self:
        """Return the interview without its latest answer or choice.

        Raises:
            InvalidInputError: there is no answer or choice.
        """
        if not self.history:
            raise InvalidInputError("there is nothing to go back to.", field="history")
        return self.answer(self.history[-1], None)

    @property
    def question(self) -> Question | None:
        """The next question; None if all are answered."""
        return next(iter(next_questions(self.fingerprint, choices=self.choices)), None)

    @property
    def proposal(self) -> Proposal | None:
        """A proposed answer to the next question that follows from other answers, to be confirmed; usually None."""
        question = self.question
        return propose_costs(self.fingerprint) if question is not None and question.field == "costs" else None

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """All contradictions between answers and choices; `with_answers(resolution.answers)` resolves one."""
        return (*contradictions(self.fingerprint), *self._forbidden())

    @property
    def guides(self) -> tuple[GuideOutcome, ...]:
        """The guides that a person can decide; none while questions or contradictions are open."""
        if self.contradictions or self.question is not None:
            return ()
        return tuple(guide for step in self.recommendation().steps for guide in step.guides)

    @property
    def open_choices(self) -> tuple[GuideOutcome, ...]:
        """The guides that need a person's choice; none while questions or contradictions are open."""
        return tuple(guide for guide in self.guides if not guide.chosen)

    @property
    def asked(self) -> Contradiction | Question | GuideOutcome | None:
        """The next thing to resolve, to answer or to choose; None: the interview is complete.

        Contradictions come before questions, since further answers would build on them.
        """
        if contradictions := self.contradictions:
            return contradictions[0]
        return self.question or next(iter(self.open_choices), None)

    @property
    def progress(self) -> Progress:
        """The numbers of questions that are answered, certain to come and possible."""
        return progress_of(load_method(), self.fingerprint, check_choices(load_method(), self.choices))

    @property
    def class_labels(self) -> tuple[str, ...]:
        """The names of the classes, or their numbers; empty while their number is unknown."""
        return self.fingerprint.class_labels(self.class_names)

    @property
    def stage(self) -> Stage:
        """The next thing to do."""
        match self.asked:
            case Contradiction():
                return "contradictions"
            case Question():
                return "questions"
            case GuideOutcome():
                return "choices"
            case None:
                return "complete"

    def recommendation(self) -> Recommendation:
        """The metrics for these answers and choices, without those of open guides.

        Raises:
            InvalidInputError: an answer is missing, or answers contradict each other.
        """
        found = recommend(self.fingerprint, choices=self.choices)
        return (
            found if self.class_names is None else found.model_copy(update={"class_names": self.class_names})
        )

    def _changed(
        self,
        fingerprint: ProblemFingerprint,
        choices: Mapping[str, tuple[str, ...]],
        history: Iterable[str],
        names: tuple[str, ...] | None,
    ) -> Self:
        known = {*fingerprint.answered_fields(), *choices}
        return self.from_document(
            {
                "fingerprint": fingerprint,
                "choices": choices,
                "history": tuple(name for name in history if name in known),
                "class_names": names,
            }
        )

    def _forbidden(self) -> tuple[Contradiction, ...]:
        """Contradictions of choices for which the answers allow one option only, another one."""
        forbidden = forbidden_choices(self.fingerprint, self.choices)
        return tuple(
            Contradiction(
                id=f"{item.guide}_against_answers",
                answers={item.guide: self.choices[item.guide]},
                explanation=f"You decided for {', '.join(self.choices[item.guide])} in {item.guide}, but for these "
                f"answers only {item.option} is right ({item.source}).",
                resolutions=(Resolution(text=f"Take {item.option}.", answers={item.guide: None}),),
            )
            for item in forbidden
        )


def start_interview(
    *, class_names: Sequence[str] | None = None, answers: Mapping[str, object] | None = None
) -> Interview:
    """Return a new interview, with answers that are already known, those of `propose_answers` for instance.

    Args:
        class_names: names of the classes, in the order of the scores; the number of classes need not be asked then.
        answers: field, item of the source or guide -> answer.

    Raises:
        InvalidInputError: invalid names, no such item, or a value that it cannot have.
    """
    interview = Interview() if class_names is None else Interview().with_class_names(class_names)
    return interview.with_answers(answers or {})


def _checked_names(names: Sequence[object]) -> tuple[str, ...]:
    """Names that differ and are printable."""
    given = (names,) if isinstance(names, str) else tuple(names)
    if len(given) > MOST_CLASSES:
        raise InvalidInputError(
            f"expected at most {MOST_CLASSES} names, got {len(given)}.",
            field="class_names",
            hint="Join classes that lead to the same treatment.",
        )
    checked = tuple(name for name in given if isinstance(name, str) and name.strip() and name.isprintable())
    if len(checked) < len(given) or len(checked) < 2 or len(set(checked)) < len(checked):
        raise InvalidInputError(
            f"expected at least two different names of printable characters, got {format_value(list(given))}.",
            field="class_names",
            hint="Name every class once, in the order of the scores: benign, malignant."
            + (" Put texts in quotes." if any(not isinstance(name, str) for name in given) else ""),
        )
    return checked
