"""The form of the recommendation document: questions, tables, guides, relations, advice and contradictions."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from pydantic import Field

from lifelong_core.design.documents import Frozen
from lifelong_core.design.method.conditions import ALWAYS, Answer, Answers, ConditionData

Confidence: TypeAlias = Literal["stated", "forced", "inferred", "not_in_source"]
CONFIDENCES: tuple[Confidence, ...] = ("stated", "forced", "inferred", "not_in_source")
"""From the surest to the least sure."""


def weakest(confidences: Iterable[Confidence]) -> Confidence:
    """The least sure of several.

    Examples:
        >>> weakest(["stated", "inferred"])
        'inferred'
    """
    return CONFIDENCES[max(CONFIDENCES.index(confidence) for confidence in confidences)]


Kind: TypeAlias = Literal["choice", "yes_no", "count", "number", "class", "class_values", "matrix", "text"]
Category: TypeAlias = Literal[
    "implementation", "aggregation", "ranking", "reporting", "interpretation", "decision"
]
Display: TypeAlias = Literal[
    "confusion_matrix", "roc_curve", "precision_recall_curve", "reliability_diagram", "decision_curve"
]


class AnswerText(Frozen):
    """One answer to a question."""

    value: Answer
    label: str
    meaning: str = Field(description="What it says about the use, in a sentence.")


class Implied(Frozen):
    """An answer that follows from others, so that nobody need be asked."""

    when: ConditionData = Field(exclude=True)
    answer: Answer
    why: str
    confidence: Confidence


class Question(Frozen):
    """A question of the interview, in the words of a clinician."""

    id: str = Field(description="The item of the source, FP2.6 for instance, or the guide that asks.")
    field: str = Field(description="The field of the fingerprint that it fills.")
    name: str = Field(description="The item's name in the source.")
    kind: Kind
    question: str
    example: str
    pitfall: str = Field(description="What goes wrong where it is not asked.")
    asked_when: str
    answers: tuple[AnswerText, ...] = ()
    follow_ups: tuple[str, ...] = Field(default=(), description="Fields that may be asked because of it.")
    applies: ConditionData = Field(default=ALWAYS, exclude=True)
    implied: Implied | None = None
    source: str

    @property
    def values(self) -> tuple[Answer, ...]:
        """The answers that conditions can name; none where the answer is a number or a text."""
        return tuple(answer.value for answer in self.answers)

    def describe(self, answer: object) -> str:
        """An answer as it is printed: its label, or the value itself."""
        return next((text.label for text in self.answers if text.value == answer), str(answer))


class MetricEntry(Frozen):
    """A metric that is recommended, and where the values of its parameters come from."""

    metric: str
    parameters: Mapping[str, str] = Field(default={})
    when: ConditionData = ALWAYS
    otherwise: str = Field(
        default="", description="Why it is not recommended where the condition does not hold."
    )


class Also(Frozen):
    """A second guide where two readings of the sources differ."""

    when: ConditionData
    guide: str
    note: str
    confidence: Confidence


class Row(Frozen):
    """What to recommend for some of the answers."""

    id: str
    when: Mapping[str, tuple[Answer, ...]]
    metrics: tuple[MetricEntry, ...] | None = None
    guide: str | None = None
    forced_option: str | None = None
    also: Also | None = None
    action: Literal["elicit_costs", "invalid_answer"] | None = None
    fallback: Mapping[str, Answer] | None = None
    note: str | None = None
    confidence: Confidence
    source: str

    def possible(self, answers: Answers) -> bool:
        """Whether no answer speaks against it."""
        return all(answers.get(field) in (None, *values) for field, values in self.when.items())


class Rejection(Frozen):
    """Why metrics are not recommended; the first whose condition holds is given as the reason."""

    metrics: tuple[str, ...]
    when: ConditionData
    reason: str


class Table(Frozen):
    """A subprocess: every combination of answers to its inputs hits exactly one row."""

    id: str
    title: str
    inputs: tuple[str, ...]
    pool: tuple[str, ...]
    source: str
    rows: tuple[Row, ...]
    rejections: tuple[Rejection, ...]


class Option(Frozen):
    """What a guide can decide for: metrics, or values of parameters."""

    id: str
    metrics: tuple[MetricEntry, ...] = ()
    parameters: Mapping[str, float] = Field(default={})
    then: str | None = Field(default=None, description="A guide that gives parameters of these metrics.")


class Rule(Frozen):
    """A step of a guide's decision; `like` takes over the decision of another guide."""

    when: ConditionData
    choose: str | None = None
    like: str | None = None
    why: str
    confidence: Confidence


class Default(Frozen):
    """The option that a source recommends where nothing speaks against it."""

    option: str
    why: str
    confidence: Confidence


class Argument(Frozen):
    """Something that speaks for, against or about an option."""

    option: str
    polarity: Literal["pro", "con", "neutral"]
    text: str


class Guide(Frozen):
    """How to decide between metrics that all fit."""

    id: str
    title: str
    several: bool = Field(default=False, description="More than one option may be chosen.")
    options: tuple[Option, ...]
    rules: tuple[Rule, ...] = ()
    default: Default | None = None
    arguments: tuple[Argument, ...]
    source: str

    def option(self, name: str) -> Option:
        """The option of that name, which exists."""
        return next(option for option in self.options if option.id == name)


class Drop(Frozen):
    """Which of two related metrics is left out."""

    keep: str
    drop: str
    why: str
    source: str
    confidence: Confidence


class FurtherRelation(Frozen):
    """A relation between two recommended metrics that does not stand with the metrics."""

    metrics: tuple[str, str]
    statement: str
    source: str


class Relations(Frozen):
    """What is done where two recommended metrics say much the same."""

    drop: tuple[Drop, ...]
    further: tuple[FurtherRelation, ...]


class AdviceRule(Frozen):
    """How to apply metrics, where its condition holds and one of its metrics, if any, is recommended."""

    id: str
    category: Category
    metrics: tuple[str, ...] = ()
    when: ConditionData = ALWAYS
    values: tuple[str, ...] = ()
    display: Display | None = None
    pitfall: str
    advice: str
    caveat: str | None = None
    source: str
    confidence: Confidence


class Resolution(Frozen):
    """Answers that end a contradiction; None withdraws one."""

    text: str
    answers: Mapping[str, Any] = Field(description="Field -> answer; null withdraws it.")


class ContradictionRule(Frozen):
    """Answers that cannot all be meant."""

    id: str
    when: ConditionData
    explanation: str
    resolutions: tuple[Resolution, ...]
    source: str


class Meta(Frozen):
    """What the document is about."""

    version: int
    scope: str
    sources: Mapping[str, str]
    confidence: Mapping[Confidence, str]


class Method(Frozen):
    """The recommendation document as a whole."""

    meta: Meta
    questions: tuple[Question, ...]
    tables: tuple[Table, ...]
    guides: tuple[Guide, ...]
    relations: Relations
    application: tuple[AdviceRule, ...]
    contradictions: tuple[ContradictionRule, ...]

    def question(self, field: str) -> Question:
        """The question that fills a field, which exists."""
        return next(question for question in self.questions if question.field == field)

    def has_guide(self, name: str) -> bool:
        """Whether there is a guide of that name."""
        return any(guide.id == name for guide in self.guides)

    def guide(self, name: str) -> Guide:
        """The guide of that name, which exists."""
        return next(guide for guide in self.guides if guide.id == name)
