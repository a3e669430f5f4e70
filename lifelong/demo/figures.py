"""The figures of the demo, all from the answers and the log of service and monitor."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lifelong.demo.images import CLASS_NAMES, COSTS
from lifelong.demo.traffic import Answer, Answers
from lifelong_core.deploy import PostProcessingHead
from lifelong_core.store import Store


@dataclass(frozen=True)
class ChangeSeen:
    """A change of the prevalence that a cycle found in its window, in images before the window's end."""

    samples_ago: int
    low: int
    high: int
    size: float

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> "ChangeSeen":
        """Read the parts that the demo shows."""
        return cls(**{name: document[name] for name in ("samples_ago", "low", "high", "size")})


@dataclass(frozen=True)
class AffectedSeen:
    """Decisions between a change of the prevalence and the swap that followed, as the admin API counts them."""

    predictions: int
    affected: int
    """that the new head would make otherwise"""

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> "AffectedSeen":
        """Read the parts that the demo shows."""
        return cls(document["predictions"], document["affected"])


@dataclass(frozen=True)
class EstimatedAccuracy:
    """Accuracy that a cycle estimated without labels, with its 95 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def from_document(cls, document: dict[str, Any] | None) -> "EstimatedAccuracy | None":
        """Read it from the performance in a cycle's report; None: there is none."""
        numbers = () if document is None else document["estimates"].get("AC", ())
        return cls(*numbers) if numbers and None not in numbers else None


@dataclass(frozen=True)
class CycleSeen:
    """One cycle of the monitor as the admin API shows it."""

    identity: str
    started_at: datetime
    outcome: str
    prevalence: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    window_samples: int
    published_version: int | None
    reason: str
    changes: tuple[ChangeSeen, ...]
    """oldest first"""
    accuracy: EstimatedAccuracy | None
    """of the head that served"""
    candidate_accuracy: EstimatedAccuracy | None

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> "CycleSeen":
        """Read the parts that the demo shows."""
        report = document["report"]
        estimate = report["prevalence"] or {"prevalence": (), "low": (), "high": ()}
        return cls(
            identity=document["id"],
            started_at=datetime.fromisoformat(document["started_at"]),
            outcome=document["outcome"],
            prevalence=tuple(estimate["prevalence"]),
            low=tuple(estimate["low"]),
            high=tuple(estimate["high"]),
            window_samples=document["window_samples"],
            published_version=document["published_version"],
            reason=" ".join(reason["text"] for reason in report["reasons"]),
            changes=tuple(ChangeSeen.from_document(change) for change in report["change_points"]),
            accuracy=EstimatedAccuracy.from_document(report["performance"]),
            candidate_accuracy=EstimatedAccuracy.from_document(report["candidate_performance"]),
        )

    @property
    def images_before_change(self) -> tuple[int, int, int] | None:
        """Images in the window before the last change, with their interval; None: no change was found."""
        if not self.changes:
            return None
        last = self.changes[-1]
        end = self.window_samples
        return end - last.samples_ago, end - last.high, end - last.low


@dataclass(frozen=True)
class Story:
    """All observations of the demo."""

    seed: int
    initial_version: int
    development: Answers
    shifted: Answers
    repeated: Answers
    """the shifted images that the initial head had answered, sent again under the new head"""
    shift_started_at: float
    swapped_at: float
    affected: AffectedSeen
    """by the first swap after the shift"""
    first_shifted_cycle: CycleSeen
    """the first cycle after the shift with enough images of the new mix; its window begins with the old mix"""
    swap: CycleSeen
    """the cycle of the first swap after the shift"""
    labelled: Answers
    """the predictions whose labels were sent, after all of them had been answered"""
    cycles: tuple[CycleSeen, ...]
    heads: dict[int, PostProcessingHead]
    seconds_to_ready: float
    seconds_in_all: float

    @property
    def before(self) -> Answers:
        """The shifted images as the initial head decided them."""
        return self.shifted.select(self.shifted.by_head(self.initial_version))

    @property
    def final_version(self) -> int:
        """The head that answered last."""
        return self.repeated.answers[-1].head_version

    def labelled_part(self, answers: Answers) -> Answers:
        """The answers whose labels were sent."""
        labelled = {answer.prediction_id for answer in self.labelled.answers}
        return answers.select(np.array([answer.prediction_id in labelled for answer in answers.answers]))

    @property
    def estimated_accuracy_after(self) -> EstimatedAccuracy | None:
        """Of the head that answered last, by the cycle that published it."""
        published = (cycle for cycle in self.cycles if cycle.published_version == self.final_version)
        return next((cycle.candidate_accuracy for cycle in published), None)

    @property
    def first_window(self) -> NDArray[np.int64]:
        """True classes in the window of the first shifted cycle, about in the order of the log."""
        labels = np.concatenate([self.development.labels, self.shifted.in_order_of_arrival().labels])
        return labels[: self.first_shifted_cycle.window_samples]

    @property
    def everything(self) -> tuple[Answer, ...]:
        """Every answer that was received."""
        return self.development.answers + self.shifted.answers + self.repeated.answers


@dataclass(frozen=True)
class Figures:
    """The document that `lifelong demo --json` prints; prevalences are in the order of `classes`."""

    seed: int
    classes: tuple[str, ...]
    true_prevalence: tuple[float, ...]
    estimated_prevalence: tuple[float, ...]
    estimated_low: tuple[float, ...]
    estimated_high: tuple[float, ...]
    prevalence_error_l1: float
    """of the first cycle after the shift, whose window begins with images of the old mix"""
    prevalence_error_l1_whole_window: float
    """of the true class shares of that window: what an estimate from all of it would aim at"""
    images_before_change: int
    images_before_change_found: int | None
    """by that cycle; None: it found no change"""
    images_before_change_low: int | None
    images_before_change_high: int | None
    accuracy_before: float
    accuracy_after: float
    accuracy_argmax: float
    expected_cost_before: float
    expected_cost_after: float
    expected_cost_argmax: float
    accuracy_development: float
    estimated_accuracy_before: EstimatedAccuracy | None
    """of the old head in the new mix, by the cycle that swapped, without a label; None: it estimated none"""
    estimated_accuracy_after: EstimatedAccuracy | None
    """of the new head, by the cycle that published it, before its first decision"""
    realised_accuracy_before: float
    """of the labelled part of the images of `accuracy_before`"""
    realised_accuracy_after: float
    labelled: int
    """labels sent in all, after the last answer"""
    compared_images: int
    """new images that the old head had decided, sent again under the new one"""
    compared_decisions: int
    """logged from the change that was found to the first swap"""
    affected_decisions: int
    """of these: how many the new head would make otherwise"""
    seconds_to_ready: float
    seconds_to_swap: float
    """from the shift to the first swap"""
    seconds_in_all: float
    cycles_before_shift: int
    swaps_before_shift: int
    swaps: int
    """in all, before and after the shift"""
    head_before: int
    head_after: int
    answered: int
    refused: int
    """answers 503 on the way, each followed by another try"""
    logged: int
    mixed_heads: int

    def to_document(self) -> dict[str, Any]:
        """The figures as a JSON document."""
        return asdict(self)


def compute_figures(story: Story, store: Store) -> Figures:
    """Compute the figures; the log must hold every answer, each from one head."""
    logged = {
        answer.prediction_id: store.predictions.get(answer.prediction_id) for answer in story.everything
    }
    logits = {identity: row.logits for identity, row in logged.items() if row is not None}
    before, after = story.before, story.repeated
    argmax = np.array([logits[answer.prediction_id].argmax() for answer in before.answers])
    truth = story.shifted.prevalence
    cycle = story.first_shifted_cycle
    found, low, high = cycle.images_before_change or (None, None, None)
    early = [cycle for cycle in story.cycles if cycle.started_at.timestamp() < story.shift_started_at]
    return Figures(
        seed=story.seed,
        classes=CLASS_NAMES,
        true_prevalence=tuple(truth.tolist()),
        estimated_prevalence=cycle.prevalence,
        estimated_low=cycle.low,
        estimated_high=cycle.high,
        prevalence_error_l1=float(np.abs(np.asarray(cycle.prevalence) - truth).sum()),
        prevalence_error_l1_whole_window=float(np.abs(_shares(story.first_window) - truth).sum()),
        images_before_change=len(story.development.answers),
        images_before_change_found=found,
        images_before_change_low=low,
        images_before_change_high=high,
        accuracy_before=before.accuracy,
        accuracy_after=after.accuracy,
        accuracy_argmax=float(np.mean(argmax == before.labels)),
        expected_cost_before=before.expected_cost,
        expected_cost_after=after.expected_cost,
        expected_cost_argmax=float(np.mean(np.asarray(COSTS)[before.labels, argmax])),
        accuracy_development=story.development.accuracy,
        estimated_accuracy_before=story.swap.accuracy,
        estimated_accuracy_after=story.estimated_accuracy_after,
        realised_accuracy_before=story.labelled_part(before).accuracy,
        realised_accuracy_after=story.labelled_part(after).accuracy,
        labelled=len(story.labelled.answers),
        compared_images=len(before.answers),
        compared_decisions=story.affected.predictions,
        affected_decisions=story.affected.affected,
        seconds_to_ready=story.seconds_to_ready,
        seconds_to_swap=story.swapped_at - story.shift_started_at,
        seconds_in_all=story.seconds_in_all,
        cycles_before_shift=len(early),
        swaps_before_shift=sum(cycle.outcome == "swap" for cycle in early),
        swaps=sum(cycle.outcome == "swap" for cycle in story.cycles),
        head_before=story.initial_version,
        head_after=story.final_version,
        answered=len(story.everything),
        refused=story.development.refusals + story.shifted.refusals + story.repeated.refusals,
        logged=len(logits),
        mixed_heads=sum(
            _is_mixed(answer, story.heads[answer.head_version], logits[answer.prediction_id])
            for answer in story.everything
            if answer.prediction_id in logits
        ),
    )


def _shares(labels: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.bincount(labels, minlength=len(CLASS_NAMES)) / len(labels)


def _is_mixed(answer: Answer, head: PostProcessingHead, logits: np.ndarray) -> bool:
    """Whether the answer is anything else than the head that it names, applied to the logged logits."""
    output = head.apply(logits[None])
    return int(output.decisions[0]) != answer.decision or not np.allclose(
        output.probabilities[0], answer.probabilities, rtol=0, atol=1e-9
    )
