"""The recommendation as a value that can be stored, sent and printed, with the path to each metric."""

from collections import Counter
from collections.abc import Mapping
from typing import Literal, TypeAlias

from pydantic import Field

from lifelong_core.design.method.conditions import Matrix, ParameterValue
from lifelong_core.design.method.schema import Argument, Category, Confidence, Display, weakest
from lifelong_core.design.problem_fingerprint import Answer, ProblemFingerprint
from lifelong_core.values.documents import Frozen, FrozenDocument

SCHEMA_VERSION = 1

AnswerValue: TypeAlias = bool | int | float | str | tuple[float, ...] | tuple[str, ...] | Matrix

DecidedBy: TypeAlias = Literal["person", "answers", "default", "nobody"]
"""`default`: a source recommends it if no rule decides; `nobody`: the choice is open."""


class PathEntry(Frozen):
    """An answer on the path to a row."""

    item: str = Field(description="The item of the source.")
    field: str
    name: str
    answer: Answer
    label: str
    implied: str | None = Field(
        default=None, description="Why the answer follows from others, if it was not asked."
    )


class RecommendedMetric(Frozen):
    """A metric to compute."""

    metric: str = Field(description="The acronym, as in METRICS.")
    per_class: bool
    parameters: Mapping[str, ParameterValue] = Field(
        default={}, description="As compute_metrics takes them: costs, prevalence, beta, threshold, target."
    )
    target_class: int | None = Field(
        default=None, description="The only class that is reported; None: all classes."
    )
    class_weights: tuple[float, ...] | None = Field(
        default=None, description="Weights of the mean over classes."
    )

    @property
    def label(self) -> str:
        """The acronym with the parameters that belong to the name.

        Examples:
            >>> RecommendedMetric(metric="TNR", per_class=True, parameters={"target": ("TPR", 0.95)}).label
            'TNR@(TPR=0.95)'
            >>> RecommendedMetric(metric="NB", per_class=True, parameters={"threshold": 0.1}).label
            'NB@0.1'
        """
        match dict(self.parameters):
            case {"target": (metric, value)}:
                return f"{self.metric}@({metric}={value})"
            case {"threshold": threshold}:
                return f"{self.metric}@{threshold}"
            case {"beta": beta}:
                return f"{self.metric} (beta={beta})"
            case _:
                return self.metric


class RejectedMetric(Frozen):
    """A metric that is not recommended, with the reason."""

    metric: str
    reason: str


class GuideOutcome(Frozen):
    """The outcome of a guide."""

    guide: str
    title: str
    options: tuple[str, ...]
    several: bool = Field(description="Whether a person may choose more than one option.")
    chosen: tuple[str, ...] = Field(description="Empty: the choice is still open.")
    decided_by: DecidedBy
    why: str
    default: str | None = Field(description="The option that a source recommends if no rule decides.")
    confidence: Confidence
    arguments: tuple[Argument, ...]
    source: str

    def arguments_about(self, option: str) -> tuple[Argument, ...]:
        """The arguments for, against and about one option."""
        return tuple(argument for argument in self.arguments if argument.option == option)


class Step(Frozen):
    """The recommendation of one subprocess."""

    subprocess: str
    title: str
    row: str = Field(description="The row of the table that the answers lead to.")
    fallback_row: str | None = Field(
        default=None,
        description="The row that replaces a row without a recommendation until more is known.",
    )
    action: str | None = Field(
        default=None, description="An action that is needed before the recommendation is final."
    )
    notes: tuple[str, ...]
    path: tuple[PathEntry, ...]
    metrics: tuple[RecommendedMetric, ...]
    rejected: tuple[RejectedMetric, ...]
    guides: tuple[GuideOutcome, ...]
    confidence: Confidence = Field(description="The lowest confidence of all parts of the step.")
    source: str


class RelationWarning(Frozen):
    """Two recommended metrics that carry similar information."""

    metrics: tuple[str, str]
    statement: str
    source: str


class Advice(Frozen):
    """How to apply the metrics."""

    id: str
    category: Category
    pitfall: str
    advice: str
    values: Mapping[str, AnswerValue] = Field(description="Answers that the advice refers to.")
    caveat: str | None
    confidence: Confidence
    source: str


class UnusedAnswer(Frozen):
    """An answer or a choice that affected nothing."""

    item: str = Field(description="The field of the fingerprint, or the guide.")
    value: AnswerValue


class Recommendation(FrozenDocument):
    """The recommended metrics for a fingerprint, with reasons."""

    schema_version: Literal[1] = SCHEMA_VERSION
    method_version: int = Field(description="Version of the recommendation document.")
    fingerprint: ProblemFingerprint
    choices: Mapping[str, tuple[str, ...]] = Field(description="The choices of a person, by guide.")
    class_names: tuple[str, ...] | None = Field(
        default=None, description="Names of the classes, in the order of the scores; null: no names."
    )
    steps: tuple[Step, ...]
    warnings: tuple[RelationWarning, ...]
    advice: tuple[Advice, ...]
    displays: tuple[Display, ...] = Field(description="Plots and tables to show beside the metrics.")
    unused: tuple[UnusedAnswer, ...]

    @property
    def metrics(self) -> tuple[RecommendedMetric, ...]:
        """All recommended metrics; equal ones of several steps once."""
        found: list[RecommendedMetric] = []
        for step in self.steps:
            found += [metric for metric in step.metrics if metric not in found]
        return tuple(found)

    @property
    def open_choices(self) -> tuple[GuideOutcome, ...]:
        """The guides without a choice."""
        return tuple(guide for step in self.steps for guide in step.guides if not guide.chosen)

    @property
    def confidence(self) -> Confidence:
        """The confidence of the least certain step."""
        return weakest(step.confidence for step in self.steps)

    def is_same(self, other: "Recommendation") -> bool:
        """Whether both recommend the same for the same answers, whatever the classes are called."""
        one, another = (given.model_copy(update={"class_names": None}).to_json() for given in (self, other))
        return one == another

    def step(self, subprocess: str) -> Step:
        """The step of a subprocess: S2, S3, S4, S5_step1 or S5_step2.

        Raises:
            KeyError: there is no such subprocess.
        """
        found = next((step for step in self.steps if step.subprocess == subprocess), None)
        if found is None:
            raise KeyError(subprocess)
        return found


def label_metrics(recommendation: Recommendation) -> tuple[tuple[str, RecommendedMetric], ...]:
    """The recommended metrics, each under a label of its own.

    Where two have the same label, such as EC with different costs, the second is `EC (2)`.
    """
    seen: Counter[str] = Counter()
    found: list[tuple[str, RecommendedMetric]] = []
    for metric in recommendation.metrics:
        seen[metric.label] += 1
        count = seen[metric.label]
        found.append((metric.label if count == 1 else f"{metric.label} ({count})", metric))
    return tuple(found)
