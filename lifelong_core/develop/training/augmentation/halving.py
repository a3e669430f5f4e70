"""Scores of sub-policies by a trained model, and successive halving of the candidates."""
# pyright: reportUnknownMemberType=false

import hashlib
import io
import math
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from lifelong_core.develop.training.augmentation.transform import policy_transform
from lifelong_core.develop.training.optimisation.batches import generator_of
from lifelong_core.develop.training.optimisation.losses import score
from lifelong_core.develop.training.recipe import AugmentationPolicy, SubPolicy
from lifelong_core.develop.training.result import TriedSubPolicy

LogitsOf: TypeAlias = Callable[[torch.Tensor], torch.Tensor]
"""From images, uint8 (n, C, h, w), to logits, float32 (n, classes), on the CPU."""
ROUNDS = 3
_HALVED = 2
_SMALLEST_ROUND = 8
"""images of each class, if there are so many"""
_AT_ONCE = 256

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True, eq=False)
class Scorer:
    """The loss of a trained model on augmented held-out images: density matching after Lim et al. (2019).

    A model that was trained without a sub-policy has a low loss on images that the sub-policy changed if these look
    like images of their class.

    Attributes:
        logits_of: the model.
        pixels: uint8 (n, C, H, W), images at positions 0..N-1, before the random crop.
        labels: (N,), each class occurs, in the order of `in_turn`.
        size: height and width of the model's input.
        seed: of crops and directions, which are the same for all sub-policies.
    """

    logits_of: LogitsOf
    pixels: Callable[[NDArray[np.int64]], torch.Tensor]
    labels: NDArray[np.int64]
    size: tuple[int, int]
    seed: int

    @property
    def classes(self) -> int:
        """C."""
        return int(self.labels.max()) + 1

    def loss(self, steps: SubPolicy, images: int) -> float:
        """Mean cross-entropy within each class, averaged over the classes, on the first images."""
        transform = policy_transform(AugmentationPolicy(sub_policies=(steps,)), size=self.size)
        chosen = np.arange(images)
        parts: list[torch.Tensor] = []
        for begin in range(0, len(chosen), _AT_ONCE):
            changed = transform(
                self.pixels(chosen[begin : begin + _AT_ONCE]), generator_of(self.seed, "score", begin)
            )
            parts.append(self.logits_of(changed))
        return score(torch.cat(parts), self.labels[chosen], np.full(self.classes, 1 / self.classes)).loss


def in_turn(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions in an order in which one case of every class comes first, then the next one of every class, and so on.

    Args:
        labels: (N,).
    """
    ranks = np.zeros(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        own = labels == label
        ranks[own] = np.arange(own.sum())
    return np.lexsort((labels, ranks))


@dataclass(frozen=True)
class Round:
    """The number of candidates, and of the images that score them."""

    candidates: int
    images: int


def plan_rounds(candidates: int, images: int, classes: int, *, kept: int) -> tuple[Round, ...]:
    """Rounds with half of the candidates and twice the images of the one before; the last one has all images.

    Args:
        candidates: of the first round.
        images: held-out ones.
        classes: each has images in every round.
        kept: candidates that stay in every round, if there are so many.
    """
    rounds: list[Round] = []
    for number in range(ROUNDS):
        share = _HALVED ** (ROUNDS - 1 - number)
        rounds.append(
            Round(
                min(candidates, max(kept, math.ceil(candidates / _HALVED**number))),
                min(images, max(_SMALLEST_ROUND * classes, math.ceil(images / share))),
            )
        )
    return tuple(rounds)


def halve(
    candidates: Sequence[SubPolicy],
    rounds: Sequence[Round],
    loss: Callable[[SubPolicy, int], float],
    *,
    finished: Sequence[tuple[float, ...]] = (),
    on_scored: Callable[[int], None] = lambda _: None,
    on_round: Callable[[Sequence[tuple[float, ...]]], None] = lambda _: None,
) -> tuple[TriedSubPolicy, ...]:
    """Score all candidates on few images, the better half on more, and so on.

    Args:
        candidates: of the first round.
        rounds: from `plan_rounds`.
        loss: of a sub-policy on so many images.
        finished: losses of finished rounds, as `on_round` got them.
        on_scored: gets the number of images of each score.
        on_round: gets the losses of all rounds after each one.

    Returns:
        All candidates, those of the last round first, and within a round those of the lowest loss.
    """
    losses = list(finished)
    remaining = list(candidates)
    tried: list[TriedSubPolicy] = []
    for number, planned in enumerate(rounds):
        if number == len(losses):
            found: list[float] = []
            for steps in remaining:
                found.append(loss(steps, planned.images))
                on_scored(planned.images)
            losses.append(tuple(found))
            on_round(losses)
        order = sorted(range(len(remaining)), key=losses[number].__getitem__)
        kept = rounds[number + 1].candidates if number + 1 < len(rounds) else 0
        left = [
            TriedSubPolicy(steps=remaining[at], loss=losses[number][at], images=planned.images)
            for at in order[kept:]
        ]
        tried = [*left, *tried]
        remaining = [remaining[at] for at in order[:kept]]
    return tuple(tried)


@dataclass(frozen=True, eq=False)
class SearchState:
    """A search during the training of its model, or after a round.

    Attributes:
        key: from `search_key`.
        training: checkpoint of the training; None: it has ended.
        weights: of the trained model; None: it is still trained.
        losses: of the candidates in each finished round.
    """

    key: str
    training: bytes | None
    weights: Tensors | None
    losses: tuple[tuple[float, ...], ...] = ()


def search_key(training_key: str, trials: int) -> str:
    """Digest of everything that decides the result of a search.

    Args:
        training_key: of the model's training.
        trials: number of candidates.
    """
    return hashlib.sha256(f"search\n{training_key}\n{trials}".encode()).hexdigest()


def write_state(state: SearchState) -> bytes:
    """The state as bytes."""
    buffer = io.BytesIO()
    torch.save(vars(state), buffer)
    return buffer.getvalue()


def read_state(content: bytes, key: str) -> SearchState | None:
    """The state in these bytes; None: it is damaged, or that of another search. Nothing in it is executed."""
    try:
        found: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        state = SearchState(found["key"], found["training"], found["weights"], found["losses"])
    except (RuntimeError, ValueError, KeyError, TypeError, EOFError, OSError, pickle.UnpicklingError):
        return None
    return state if state.key == key else None
