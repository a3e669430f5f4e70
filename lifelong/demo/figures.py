"""The figures of the demo, all taken from what service and monitor answered and logged."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import numpy as np

from lifelong.demo.images import CLASS_NAMES, COSTS
from lifelong.demo.traffic import Answer, Answers
from lifelong_core.deploy import PostProcessingHead
from lifelong_core.store import Store


@dataclass(frozen=True)
class CycleSeen:
    """One cycle of the monitor as the admin API shows it."""

    started_at: datetime
    outcome: str
    prevalence: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    window_samples: int
    published_version: int | None
    reason: str

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> "CycleSeen":
        """Read the parts that the demo shows."""
        report = document["report"]
        estimate = report["prevalence"] or {"prevalence": (), "low": (), "high": ()}
        return cls(
            started_at=datetime.fromisoformat(document["started_at"]),
            outcome=document["outcome"],
            prevalence=tuple(estimate["prevalence"]),
            low=tuple(estimate["low"]),
            high=tuple(estimate["high"]),
            window_samples=document["window_samples"],
            published_version=document["published_version"],
            reason=" ".join(reason["text"] for reason in report["reasons"]),
        )


@dataclass(frozen=True)
class Story:
    """All that the demo observed."""

    seed: int
    initial_version: int
    development: Answers
    shifted: Answers
    repeated: Answers
    """the shifted images that the initial head had answered, sent again under the new head"""
    shift_started_at: float
    swapped_at: float
    first_shifted_cycle: CycleSeen
    """the first cycle whose whole window came after the shift"""
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

    @property
    def everything(self) -> tuple[Answer, ...]:
        """Every answer that was received."""
        return self.development.answers + self.shifted.answers + self.repeated.answers


@dataclass(frozen=True)
class Figures:
    """What `lifelong demo --json` prints; prevalences are in the order of `classes`."""

    seed: int
    classes: tuple[str, ...]
    true_prevalence: tuple[float, ...]
    estimated_prevalence: tuple[float, ...]
    estimated_low: tuple[float, ...]
    estimated_high: tuple[float, ...]
    prevalence_error_l1: float
    """of the estimate from the first window of new images only, which may come after the first swap"""
    accuracy_before: float
    accuracy_after: float
    accuracy_argmax: float
    expected_cost_before: float
    expected_cost_after: float
    expected_cost_argmax: float
    accuracy_development: float
    compared_images: int
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
    """Compute the figures; the log is read to prove that every answer is in it and came from one head."""
    logged = {
        answer.prediction_id: store.predictions.get(answer.prediction_id) for answer in story.everything
    }
    logits = {identity: row.logits for identity, row in logged.items() if row is not None}
    before, after = story.before, story.repeated
    argmax = np.array([logits[answer.prediction_id].argmax() for answer in before.answers])
    truth = story.shifted.prevalence
    cycle = story.first_shifted_cycle
    early = [cycle for cycle in story.cycles if cycle.started_at.timestamp() < story.shift_started_at]
    return Figures(
        seed=story.seed,
        classes=CLASS_NAMES,
        true_prevalence=tuple(truth.tolist()),
        estimated_prevalence=cycle.prevalence,
        estimated_low=cycle.low,
        estimated_high=cycle.high,
        prevalence_error_l1=float(np.abs(np.asarray(cycle.prevalence) - truth).sum()),
        accuracy_before=before.accuracy,
        accuracy_after=after.accuracy,
        accuracy_argmax=float(np.mean(argmax == before.labels)),
        expected_cost_before=before.expected_cost,
        expected_cost_after=after.expected_cost,
        expected_cost_argmax=float(np.mean(np.asarray(COSTS)[before.labels, argmax])),
        accuracy_development=story.development.accuracy,
        compared_images=len(before.answers),
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


def _is_mixed(answer: Answer, head: PostProcessingHead, logits: np.ndarray) -> bool:
    """Whether the answer is anything else than the head that it names, applied to the logged logits."""
    output = head.apply(logits[None])
    return int(output.decisions[0]) != answer.decision or not np.allclose(
        output.probabilities[0], answer.probabilities, rtol=0, atol=1e-9
    )
