"""Should another model be trained? Judged from successive looks at a population; a person decides.

A look counts only with data of its own, so that a burst of unusual samples that stays in sliding windows for many
cycles counts once.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, get_args

from lifelong_core.values.errors import InvalidInputError

RetrainingReason: TypeAlias = Literal["estimated_performance", "realised_performance", "repeated_refusals"]
RETRAINING_REASONS: Final[tuple[RetrainingReason, ...]] = get_args(RetrainingReason)

LOOK_FIRST: Final[Mapping[RetrainingReason, str]] = MappingProxyType(
    {
        "estimated_performance": "Compare the estimated prevalence with what is known of the patients there. If it is"
        " right, the model is not good enough for this mix of classes, and a swap of the head does not help.",
        "realised_performance": "Check a sample of the labels: a changed labelling habit, or labels of difficult cases"
        " only, look like a worse model.",
        "repeated_refusals": "Look at recent images and their way here first: a broken or new scanner, another"
        " protocol or a changed preprocessing is corrected at its source. Retraining needs labelled images of this"
        " place.",
    }
)
"""What a person should look at before a retraining."""


@dataclass(frozen=True)
class MissedThreshold:
    """A figure whose whole interval is on the wrong side of its threshold."""

    metric: str
    """its label; `assumption_p_value`: of the test that only the prevalence has changed"""
    class_index: int | None
    """None: of all classes"""
    value: float
    low: float | None
    high: float | None
    """ends of the interval; None: the figure has none"""
    threshold: float

    @property
    def key(self) -> tuple[str, int | None]:
        """What is compared with the threshold."""
        return self.metric, self.class_index


@dataclass(frozen=True)
class Look:
    """What one cycle saw of a population."""

    cycle: str
    """id of the cycle"""
    at: datetime
    later: int
    """samples that came after those of this look, up to the newest look"""
    span: int
    """samples that lie between the end of an earlier look and the end of this one, if they share none"""
    missed: tuple[MissedThreshold, ...] | None
    """empty: nothing is missed; None: this look cannot tell"""
    is_fine: bool = False
    """whether the figures themselves reach their thresholds, not only one end of their intervals"""


@dataclass(frozen=True)
class RetrainingNeed:
    """Why a model should be trained again, seen in successive looks."""

    reason: RetrainingReason
    missed: tuple[MissedThreshold, ...]
    """of the newest look"""
    since: datetime
    """time of the first look that counts"""
    cycles: tuple[str, ...]
    """of the looks that count for the first figure, oldest first"""

    def to_document(self) -> dict[str, Any]:
        """All but the reason as JSON values, with what a person should look at first."""
        return {
            "missed": [_finite(asdict(figure)) for figure in self.missed],
            "since": self.since.isoformat(),
            "cycles": list(self.cycles),
            "look_first": LOOK_FIRST[self.reason],
        }


def judge_retraining(reason: RetrainingReason, looks: Iterable[Look], cycles: int) -> RetrainingNeed | None:
    """Propose a retraining if a figure misses its threshold in so many successive looks that share no sample.

    Going back from the newest look, a look that misses the figure counts if it shares no sample with the one counted
    before; one that reaches the threshold, or whose interval contains it, ends the search. Looks that cannot tell are
    passed over; without a verdict of the newest look nothing is proposed.

    Args:
        reason: what the looks are about.
        looks: newest first; no more are taken than needed.
        cycles: looks that have to count, at least 1.

    Returns:
        None: there is no such figure.

    Raises:
        InvalidInputError: `cycles` is not positive.

    Examples:
        >>> missed = (MissedThreshold("AC", None, 0.7, 0.65, 0.75, 0.8),)
        >>> looks = [Look(str(i), datetime(2026, 1, 9 - i), later=50 * i, span=100, missed=missed) for i in range(5)]
        >>> judge_retraining("estimated_performance", looks, cycles=3).cycles
        ('4', '2', '0')
        >>> judge_retraining("estimated_performance", looks, cycles=4) is None
        True
    """
    if cycles < 1:
        raise InvalidInputError(f"expected at least 1 cycle, got {cycles}.", field="cycles")
    remaining = iter(looks)
    newest = next(remaining, None)
    if newest is None or not newest.missed:
        return None
    counted = {figure.key: [newest] for figure in newest.missed}
    ongoing = set(counted)
    while any(len(counted[key]) < cycles for key in ongoing):
        look = next(remaining, None)
        if look is None:
            break
        if look.missed is None:
            continue
        ongoing &= {figure.key for figure in look.missed}
        for key in ongoing:
            last = counted[key][-1]
            if len(counted[key]) < cycles and look.later - last.later >= last.span:
                counted[key].append(look)
    lasting = tuple(figure for figure in newest.missed if len(counted[figure.key]) == cycles)
    if not lasting:
        return None
    first = min(chain.from_iterable(counted[figure.key] for figure in lasting), key=lambda look: look.at)
    shown = tuple(look.cycle for look in reversed(counted[lasting[0].key]))
    return RetrainingNeed(reason, lasting, first.at, shown)


def _finite(figures: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity; such an end of an interval is None."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in figures.items()
    }
