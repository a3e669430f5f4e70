"""Train the demo's small convolutional network and export it to ONNX."""

import logging
import warnings
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from lifelong.demo.images import CLASS_NAMES, IMAGE_SIZE, Split, degrade

EPOCHS = 12
COPIES = 3
BATCH = 64
MEAN, STANDARD_DEVIATION = 0.4, 0.25


def network() -> nn.Sequential:
    """Two convolutions and a linear layer: 6,500 weights, some tenths of a millisecond per image."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * (IMAGE_SIZE // 4) ** 2, len(CLASS_NAMES)),
    )


def train(split: Split, *, seed: int, on_epoch: Callable[[], None]) -> nn.Sequential:
    """Train on `COPIES` degraded copies of every image, classes weighted equally; `on_epoch` after each epoch."""
    # Convolutions this small lose more by sharing than by waiting.
    torch.set_num_threads(1)
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    model = network()
    images = np.concatenate([degrade(split.digits, rng) for _ in range(COPIES)])
    inputs = torch.tensor((images / 255 - MEAN) / STANDARD_DEVIATION, dtype=torch.float32)[:, None]
    targets = torch.tensor(np.tile(split.labels, COPIES))
    weights = torch.tensor(len(split.labels) / np.bincount(split.labels), dtype=torch.float32)
    loss_function = nn.CrossEntropyLoss(weight=weights)
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(inputs)).split(BATCH):
            optimiser.zero_grad()
            loss_function(model(inputs[batch]), targets[batch]).backward()
            optimiser.step()
        on_epoch()
    return model.eval()


def export_onnx(model: nn.Sequential) -> bytes:
    """The network as an ONNX graph: input `image` (N, 1, 24, 24), output `logits` (N, 3), any N."""
    example = torch.zeros(2, 1, IMAGE_SIZE, IMAGE_SIZE)
    with warnings.catch_warnings():
        # The exporter warns about its own internals; nothing in it is about this graph.
        warnings.simplefilter("ignore")
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        program = torch.onnx.export(
            model,
            (example,),
            input_names=["image"],
            output_names=["logits"],
            dynamic_shapes=({0: torch.export.Dim("samples", min=1)},),
            dynamo=True,
            verbose=False,
        )
    if program is None:
        raise RuntimeError("the exporter returned no graph")
    return program.model_proto.SerializeToString()
