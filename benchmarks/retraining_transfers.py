"""Measures transfers between small tasks with the product's own trainer, each once, in a file that goes on growing."""

import json
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import torch
from sklearn.metrics import balanced_accuracy_score

from benchmarks.retraining_tasks import EDGE, TASKS, prepare_task, task_source
from lifelong_core.develop.knowledge.entry import Scenario
from lifelong_core.develop.training.augmentation.search import search_policy
from lifelong_core.develop.training.data.prepared import PreparedImages
from lifelong_core.develop.training.optimisation.classifier import compute_on, training_device
from lifelong_core.develop.training.optimisation.losses import split_logits
from lifelong_core.develop.training.optimisation.state import Checkpoint, read_checkpoint
from lifelong_core.develop.training.phases import Training, train
from lifelong_core.develop.training.progress import ProgressReport
from lifelong_core.develop.training.recipe import LIGHT, AugmentationPolicy, Optimisation, Recipe
from lifelong_core.values.errors import InvalidInputError

SEEDS = 3
ARCHITECTURES = ("test_convnext", "test_resnet", "test_efficientnet", "test_vit")
"""timm's smallest models, half a million weights each; the first is that of the baseline"""
OPTIMISATION = Optimisation(epochs=20, batch_size=16, learning_rate=2e-3, patience=6, plateau_patience=3)


@dataclass(frozen=True)
class Cell:
    """One training whose result is measured."""

    scenario: Scenario | None
    source: str | None
    target: str
    seed: int
    architecture: str = ARCHITECTURES[0]


@dataclass(frozen=True)
class Measured:
    """Its performance on the test split."""

    cell: Cell
    balanced_accuracy: float


def pairs() -> Iterator[tuple[str, str]]:
    """Source and target of all transfers."""
    for target in TASKS:
        for source in TASKS:
            if source != target:
                yield source, target


def all_cells() -> list[Cell]:
    """Everything that is trained, one seed after the other; transferred architectures need no further training."""
    transfers: tuple[Scenario, ...] = ("pretraining", "co_training", "augmentation")
    return [
        cell
        for seed in range(SEEDS)
        for cell in (
            *(Cell(None, None, task, seed, name) for task in TASKS for name in ARCHITECTURES),
            *(Cell(one, source, target, seed) for one in transfers for source, target in pairs()),
        )
    ]


def recipe_of(cell: Cell) -> Recipe:
    """The recipe of a training."""
    recipe = Recipe(
        scenario=cell.scenario,
        source=cell.source,
        architecture=cell.architecture,
        initial_weights="random",
        colour="grey",
        image_size=EDGE,
        optimisation=OPTIMISATION,
        seed=cell.seed,
    )
    if cell.scenario == "augmentation" and cell.source is not None:
        return recipe.model_copy(update={"augmentation": policy_of(cell.source, cell.seed)})
    return recipe


def measure(cell: Cell) -> Measured:
    """Train, and score the best weights on the test split."""
    torch.set_num_threads(1)
    recipe = recipe_of(cell)
    target, source = _prepared(cell.target, cell.seed, cell.architecture), None
    if recipe.needs_source_data and cell.source:
        source = _prepared(cell.source, cell.seed, cell.architecture)
    training = _training(recipe, target, source)
    start = None
    if cell.scenario == "pretraining" and cell.source:
        start = _pretrained(cell.source, cell.seed)
    module, _ = train(training, start, lambda _: None)
    positions = target.splits["test"]
    logits = split_logits(module, target, positions, training.computing)
    predicted = logits.argmax(1).numpy()
    return Measured(cell, float(balanced_accuracy_score(target.labels[positions], predicted)))


@cache
def policy_of(source: str, seed: int) -> AugmentationPolicy:
    """The policy that was searched for a task; the light one where its model learnt too little to search."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = search_policy(
                source,
                recipe_of(Cell(None, None, source, seed)),
                task_source(source, seed),
                work_folder=Path(folder),
                device="cpu",
            )
        except InvalidInputError:
            return LIGHT
    return found.policy


def measure_all(file: Path, *, workers: int, cells: list[Cell]) -> dict[Cell, float]:
    """Measure what the file does not hold yet, and add it; the file is one JSON object in each line."""
    known = read_measured(file)
    missing = [cell for cell in cells if cell not in known]
    with file.open("a") as lines, ProcessPoolExecutor(workers) as pool:
        running = [pool.submit(measure, cell) for cell in missing]
        for number, future in enumerate(as_completed(running), 1):
            found = future.result()
            known[found.cell] = found.balanced_accuracy
            lines.write(json.dumps({**asdict(found.cell), "BA": found.balanced_accuracy}) + "\n")
            lines.flush()
            print(f"\r{number} of {len(missing)} trainings", end="", file=sys.stderr)
    return known


def read_measured(file: Path) -> dict[Cell, float]:
    """Balanced accuracy of the trainings in the file."""
    if not file.is_file():
        return {}
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return {Cell(**{name: row[name] for name in Cell.__dataclass_fields__}): row["BA"] for row in rows}


def _training(recipe: Recipe, target: PreparedImages, source: PreparedImages | None) -> Training:
    computing = compute_on(training_device("cpu"), target.preprocessing, mixed_precision=False)
    return Training(
        recipe, target, source, None, computing, ProgressReport("cpu", lambda _: None), lambda _: None
    )


@cache
def _prepared(task: str, seed: int, architecture: str) -> PreparedImages:
    return prepare_task(task, seed, recipe_of(Cell(None, None, task, seed, architecture)))


@cache
def _pretrained(source: str, seed: int) -> Checkpoint:
    """A checkpoint of the first phase, which is the same for all targets."""
    other = next(task for task in TASKS if task != source)
    recipe = recipe_of(Cell("pretraining", source, other, seed))
    training = _training(recipe, *(_prepared(task, seed, recipe.architecture) for task in (other, source)))
    saved: list[Checkpoint] = []

    def keep(content: bytes) -> None:
        checkpoint = read_checkpoint(content, training.key)
        if checkpoint is not None and checkpoint.phase == 0:
            saved.append(checkpoint)

    train(training, None, keep)
    return saved[-1]
