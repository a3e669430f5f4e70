"""Searches an augmentation policy for a task (scenario 3 of the thesis, section 5.1.3).

Density matching as in Fast AutoAugment (Lim et al., 2019), with random candidates and successive halving: a model is
trained on a part of the training split without augmentation, and a candidate is as good as its loss on augmented images
of the other part is low. Validation, calibration and test split score nothing.
"""
# pyright: reportUnknownMemberType=false

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from lifelong_core.develop.features.backbone import limit_threads
from lifelong_core.develop.features.sources.entry import ImageSource
from lifelong_core.develop.training.augmentation.halving import (
    ROUNDS,
    LogitsOf,
    Scorer,
    SearchState,
    halve,
    in_turn,
    plan_rounds,
    read_state,
    search_key,
    write_state,
)
from lifelong_core.develop.training.augmentation.transform import (
    draw_candidates,
    effective_steps,
    random_crop,
)
from lifelong_core.develop.training.data.prepared import PreparedImages, hold_out, prepare_images
from lifelong_core.develop.training.export.exported_model import training_preprocessing
from lifelong_core.develop.training.optimisation.batches import generator_of
from lifelong_core.develop.training.optimisation.classifier import (
    Computing,
    compute_on,
    create_classifier,
    describe_device,
    load_weights,
    read_initial_weights,
    training_device,
)
from lifelong_core.develop.training.optimisation.state import read_checkpoint
from lifelong_core.develop.training.phases import Training, report_reading, train
from lifelong_core.develop.training.progress import ProgressReport, TrainingProgress
from lifelong_core.develop.training.recipe import AugmentationPolicy, Recipe, SubPolicy
from lifelong_core.develop.training.result import SearchOutcome, TriedSubPolicy
from lifelong_core.values.errors import InvalidInputError

TRIALS = 100
KEPT = 10
"""Largest number of sub-policies of the policy."""
PROBABILITY = 0.5
"""Of each step in the policy. A step is scored with probability 1, so that a low one cannot hide that it does harm."""
ALLOWED_COST = 0.25
"""Largest share of what the model knows, log(C) minus its loss, that a sub-policy may cost."""
_HELD_OUT = 0.25
_MOST_SCORED = 2000
_EXAMPLES = 32
_TRAINING_ENDS = 0.7
"""Fraction of the whole work: scoring is forward passes only."""


def search_policy(
    task: str,
    recipe: Recipe,
    images: ImageSource,
    *,
    work_folder: Path,
    trials: int = TRIALS,
    class_names: Sequence[str] | None = None,
    device: str = "auto",
    weights_folder: Path | None = None,
    checkpoint: bytes | None = None,
    on_checkpoint: Callable[[bytes], None] = lambda _: None,
    on_progress: Callable[[TrainingProgress], None] = lambda _: None,
    log: Callable[[str], None] = lambda _: None,
    check_space: Callable[[int], None] = lambda _: None,
) -> SearchOutcome:
    """Search the sub-policies that keep the classes of a task's images.

    Equal recipe, images, weights and trials give an equal policy on a CPU, also when the search was interrupted and
    goes on from a checkpoint.

    Args:
        task: that the policy is searched for.
        recipe: of the model that scores; its augmentation and its transfer are left out; its seed is also the search's.
        images: of the task.
        work_folder: for decoded images; a later attempt uses them again.
        trials: number of random sub-policies that are tried.
        class_names: in the order of the logits; None: those of the images, sorted.
        device: auto, cpu, cuda or cuda:N.
        weights_folder: of files with pretrained weights; see `Recipe.initial_weights`.
        checkpoint: what `on_checkpoint` got last; that of another search is not used.
        on_checkpoint: gets what a later call needs to go on from here.
        on_progress: gets the progress, about once a second.
        log: gets one line for each step.
        check_space: called with the bytes that decoded images take, before they are written; raises to refuse that.

    Raises:
        InvalidInputError: recipe, images and device do not fit, there are too few images, or the model learns nothing.
        ConfigurationError: there are no pretrained weights here, and the hub cannot be reached.
    """
    plain = recipe.model_copy(update={"augmentation": AugmentationPolicy(), "scenario": None, "source": None})
    chosen = training_device(device)
    preprocessing = training_preprocessing(plain)
    computing = compute_on(chosen, preprocessing, mixed_precision=plain.optimisation.mixed_precision)
    report = ProgressReport(describe_device(chosen), _first_part(on_progress))
    began = time.monotonic()
    with limit_threads(None):
        prepared = prepare_images(
            images,
            preprocessing,
            shares=plain.shares.by_split(),
            seed=plain.seed,
            folder=work_folder / "target",
            class_names=class_names,
            on_image=partial(report_reading, report),
            check_space=check_space,
        )
        remaining, held_out = hold_out(prepared, _HELD_OUT, seed=plain.seed)
        log(f"read {len(prepared.names)} images; {len(held_out)} of the training images score the candidates")
        weights = read_initial_weights(plain, weights_folder)
        training = Training(plain, remaining, None, weights, computing, report, log)
        scored = held_out[in_turn(prepared.labels[held_out])][:_MOST_SCORED]
        search = _Search(training, scored, trials, on_checkpoint)
        read = time.monotonic()
        module, state = search.train(checkpoint)
        trained = time.monotonic()
        found = search.score(module, state, ProgressReport(describe_device(chosen), on_progress))
    seconds = {
        "reading": read - began,
        "training": trained - read,
        "searching": time.monotonic() - trained,
    }
    return _outcome(task, training, found, prepared, seconds)


def _outcome(
    task: str, training: Training, search: "_Found", images: PreparedImages, seconds: dict[str, float]
) -> SearchOutcome:
    policy = search.policy(task)
    training.log(
        f"tried {len(search.tried)} sub-policies, {len(policy.sub_policies)} are in the policy: their loss is at most "
        f"{search.largest_loss:.4f}, that of images without augmentation {search.loss_of_unchanged:.4f}"
    )
    return SearchOutcome(
        policy=policy,
        recipe=training.recipe,
        tried=search.tried,
        loss_of_unchanged=search.loss_of_unchanged,
        largest_loss=search.largest_loss,
        images=search.images,
        data=images.digest,
        device=describe_device(training.computing.device),
        seconds=seconds,
        warnings=images.warnings,
    )


@dataclass(frozen=True)
class _Found:
    """All candidates with their losses, and the losses that they are compared with."""

    tried: tuple[TriedSubPolicy, ...]
    loss_of_unchanged: float
    largest_loss: float
    images: int

    def policy(self, task: str) -> AugmentationPolicy:
        """The best candidates of the last round that do no harm, each step with `PROBABILITY`."""
        good = [
            one.steps for one in self.tried if one.images == self.images and one.loss <= self.largest_loss
        ]
        return AugmentationPolicy(
            sub_policies=tuple(
                tuple(step.model_copy(update={"probability": PROBABILITY}) for step in steps)
                for steps in good[:KEPT]
            ),
            searched_on=task,
        )


@dataclass(frozen=True, eq=False)
class _Search:
    """The training of the model that scores, and the scores of the candidates."""

    training: Training
    held_out: NDArray[np.int64]
    trials: int
    on_checkpoint: Callable[[bytes], None]

    @property
    def key(self) -> str:
        return search_key(self.training.key, self.trials)

    def train(self, checkpoint: bytes | None) -> tuple[nn.Module, SearchState]:
        """The trained model, and the state of the search after its training."""
        training = self.training
        state = None if checkpoint is None else read_state(checkpoint, self.key)
        if checkpoint is not None and state is None:
            training.log("the checkpoint is damaged or of another search: beginning anew")
        if state is not None and state.weights is not None:
            module = create_classifier(
                training.recipe,
                len(training.target.class_names),
                size=training.target.input_size,
                weights=None,
            )
            load_weights(module, state.weights)
            training.log(f"goes on after {len(state.losses)} of {ROUNDS} rounds")
            return module.eval(), state
        earlier = None
        if state is not None and state.training is not None:
            earlier = read_checkpoint(state.training, training.key)
        module, _ = train(
            training,
            earlier,
            lambda content: self.on_checkpoint(write_state(SearchState(self.key, content, None))),
        )
        state = SearchState(self.key, None, module.state_dict())
        self.on_checkpoint(write_state(state))
        return module, state

    def score(self, module: nn.Module, state: SearchState, report: ProgressReport) -> _Found:
        """Score the candidates."""
        images, computing = self.training.target, self.training.computing
        scorer = Scorer(
            _logits_of(module.to(computing.device), computing),
            lambda positions: images.pixels(self.held_out[positions]),
            images.labels[self.held_out],
            images.input_size,
            self.training.recipe.seed,
        )
        unchanged = scorer.loss((), len(self.held_out))
        largest = _largest_loss(unchanged, len(images.class_names))
        candidates = self._candidates(scorer)
        rounds = plan_rounds(len(candidates), len(self.held_out), scorer.classes, kept=KEPT)
        done = sum(one.candidates * one.images for one in rounds[: len(state.losses)])
        report.expect(sum(one.candidates * one.images for one in rounds) or 1, begin=_TRAINING_ENDS, end=1.0)
        report.reach(done)
        report.begin("searching")

        def on_scored(scored: int) -> None:
            nonlocal done
            done += scored
            report.reach(done)

        def on_round(losses: Sequence[tuple[float, ...]]) -> None:
            best = min(losses[-1])
            self.training.log(
                f"round {len(losses)} of {ROUNDS}: {len(losses[-1])} sub-policies, lowest loss {best:.4f}"
            )
            self.on_checkpoint(write_state(replace(state, losses=tuple(losses))))

        tried = halve(
            candidates, rounds, scorer.loss, finished=state.losses, on_scored=on_scored, on_round=on_round
        )
        report.send()
        return _Found(tried, unchanged, largest, len(self.held_out))

    def _candidates(self, scorer: Scorer) -> tuple[SubPolicy, ...]:
        seed = self.training.recipe.seed
        examples = random_crop(
            scorer.pixels(np.arange(min(_EXAMPLES, len(self.held_out)))),
            scorer.size,
            generator_of(seed, "examples"),
        )
        return draw_candidates(effective_steps(examples), self.trials, generator_of(seed, "candidates"))


def _largest_loss(unchanged: float, classes: int) -> float:
    """The loss that a sub-policy may have.

    Raises:
        InvalidInputError: the model is no better than guessing, so that its losses tell nothing.
    """
    guessing = math.log(classes)
    if not unchanged < guessing:
        raise InvalidInputError(
            f"the model that scores augmentations has learnt nothing: its loss on held-out images is {unchanged:.3f}, "
            f"that of guessing {guessing:.3f}.",
            field="recipe",
            hint="Give more images, more epochs, or pretrained weights.",
        )
    return unchanged + ALLOWED_COST * (guessing - unchanged)


def _logits_of(module: nn.Module, computing: Computing) -> LogitsOf:
    def logits_of(images: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode(), computing.precision():
            return module(computing.inputs(images)).float().cpu()

    return logits_of


def _first_part(on_progress: Callable[[TrainingProgress], None]) -> Callable[[TrainingProgress], None]:
    """The progress of the training as a part of that of the search."""
    began = time.monotonic()

    def send(progress: TrainingProgress) -> None:
        left = progress.seconds_left
        if left is not None:
            left += (time.monotonic() - began + left) * (1 - _TRAINING_ENDS) / _TRAINING_ENDS
        on_progress(
            progress.model_copy(update={"fraction": progress.fraction * _TRAINING_ENDS, "seconds_left": left})
        )

    return send
