"""Schema of the recommendation document: questions, tables, guides, relations, advice and contradictions."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from pydantic import Field

from lifelong_core.design.method.conditions import ALWAYS, ConditionData, OfferData
from lifelong_core.design.problem_fingerprint import Answer, Answers
from lifelong_core.values.documents import Frozen

Confidence: TypeAlias = Literal["stated", "forced", "inferred", "not_in_source"]
CONFIDENCES: tuple[Confidence, ...] = ("stated", "forced", "inferred", "not_in_source")
"""From the surest to the least sure."""

Kind: TypeAlias = Literal["choice", "yes_no", "count", "number", "class", "class_values", "matrix", "text"]
Category: TypeAlias = Literal[
    "implementation", "aggregation", "ranking", "reporting", "interpretation", "decision"
]
Display: TypeAlias = Literal[
    "confusion_matrix", "roc_curve", "precision_recall_curve", "reliability_diagram", "decision_curve"
]


def weakest(confidences: Iterable[Confidence]) -> Confidence:
    """The least certain of several confidences.

    Examples:
        >>> weakest(["stated", "inferred"])
        'inferred'
    """
    return CONFIDENCES[max(CONFIDENCES.index(confidence) for confidence in confidences)]


class AnswerText(Frozen):
    """One answer to a question."""

    value: Answer
    label: str
    meaning: str = Field(description="Its meaning for the use, in a sentence.")
    offered: OfferData = Field(default=ALWAYS, exclude=True)
    """when an interview offers it; stated anyway, it contradicts the answers that rule it out"""


class Implied(Frozen):
    """An answer that follows from others and is not asked."""

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
    pitfall: str = Field(description="What goes wrong if the question is ignored.")
    asked_when: str
    answers: tuple[AnswerText, ...] = ()
    follow_ups: tuple[str, ...] = Field(default=(), description="Fields that may be asked after it.")
    applies: ConditionData = Field(default=ALWAYS, exclude=True)
    implied: Implied | None = None
    source: str

    @property
    def values(self) -> tuple[Answer, ...]:
        """The answers that conditions can name; none for numbers and texts."""
        return tuple(answer.value for answer in self.answers)

    def offered(self, answers: Answers) -> tuple[AnswerText, ...]:
        """The answers that fit the other answers so far, in the order of the document."""
        return tuple(answer for answer in self.answers if answer.offered.holds(answers) is not False)

    def describe(self, answer: object) -> str:
        """The label of an answer, or the value itself."""
        return next((text.label for text in self.answers if text.value == answer), str(answer))


class MetricEntry(Frozen):
    """A recommended metric with the sources of its parameter values."""

    metric: str
    parameters: Mapping[str, str] = Field(default={})
    when: ConditionData = ALWAYS
    otherwise: str = Field(
        default="", description="Why it is not recommended if the condition does not hold."
    )


class Also(Frozen):
    """A second guide where two readings of the sources differ."""

    when: ConditionData
    guide: str
    note: str
    confidence: Confidence


class Row(Frozen):
    """The recommendation for some combinations of answers."""

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
        """Whether the answers so far allow the row."""
        return all(answers.get(field) in (None, *values) for field, values in self.when.items())


class Rejection(Frozen):
    """A reason why metrics are not recommended; the first one whose condition holds counts."""

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
    """An option of a guide: metrics, or parameter values."""

    id: str
    metrics: tuple[MetricEntry, ...] = ()
    parameters: Mapping[str, float] = Field(default={})
    then: str | None = Field(default=None, description="A guide that sets parameters of these metrics.")


class Rule(Frozen):
    """A rule of a guide: it chooses an option, or follows another guide (`like`)."""

    when: ConditionData
    choose: str | None = None
    like: str | None = None
    why: str
    confidence: Confidence


class Default(Frozen):
    """The option that a source recommends if no rule decides."""

    option: str
    why: str
    confidence: Confidence


class Argument(Frozen):
    """An argument for, against or about an option."""

    option: str
    polarity: Literal["pro", "con", "neutral"]
    text: str


class Guide(Frozen):
    """A decision between metrics that all fit."""

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


class Companions(Frozen):
    """A metric that sums up the classes, and one that shows them; only the first ranks models."""

    metrics: tuple[str, str]
    why: str
    source: str


class FurtherRelation(Frozen):
    """A relation between two recommended metrics that the metric catalogue does not contain."""

    metrics: tuple[str, str]
    statement: str
    source: str


class Relations(Frozen):
    """Rules for recommended metrics that carry similar information."""

    companions: tuple[Companions, ...]
    further: tuple[FurtherRelation, ...]


class AdviceRule(Frozen):
    """Advice on applying metrics, with the condition and the metrics to which it applies."""

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
    """Answers that resolve a contradiction; None withdraws an answer."""

    text: str
    answers: Mapping[str, Any] = Field(description="Field -> answer; null withdraws it.")


class ContradictionRule(Frozen):
    """Answers that contradict each other."""

    id: str
    when: ConditionData
    explanation: str
    resolutions: tuple[Resolution, ...]
    source: str


class Meta(Frozen):
    """Version, scope and sources of the document."""

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
