"""A knowledge base in which the source's size decides what a transfer brings, with a little noise."""

import numpy as np

from lifelong_core.develop.knowledge.entry import SCENARIOS, TaskCard, TransferOutcomes

SCENARIO = SCENARIOS[0]


def make_outcomes(
    tasks: int = 14, *, level: float = 0.05, effect: float = 0.03, seed: int = 0
) -> TransferOutcomes:
    """Two tasks of each data set; gain = level + effect * (scaled log of the source's size) + noise."""
    rng = np.random.default_rng(seed)
    samples = np.exp(rng.uniform(5, 11, size=tasks))
    cards = tuple(
        TaskCard(
            name=f"task{seed}-{number}",
            dataset=f"data{seed}-{number // 2}",
            keywords=("medical", ("colon", "skin", "lung")[number % 3]),
            modality=("endoscopy", "dermatoscopy")[number % 2],
            classes=2 + number % 4,
            samples=int(samples[number]),
            imbalance=1 + float(rng.gamma(2.0)),
        )
        for number in range(tasks)
    )
    size = (np.log(samples) - 8) / np.sqrt(3)
    baseline = 0.6 + 0.2 * rng.random(tasks) + 0.001 * rng.normal(size=(2, 3, tasks))
    noise = 0.005 * rng.normal(size=(1, 2, 3, tasks, tasks))
    gain = level + effect * size[:, np.newaxis]
    outcomes = baseline[:, :, np.newaxis, :] + gain + noise
    groups = np.arange(tasks) // 2
    outcomes[..., groups[:, np.newaxis] == groups] = np.nan
    distances = rng.random((1, tasks, tasks))
    return TransferOutcomes(
        cards, (SCENARIO,), ("BA", "AUROC"), outcomes, baseline, ("bKLD(small,target)",), distances
    )
