"""A graph that gives other logits than the model, on equal inputs or on the service's way, is refused."""

import copy
from functools import partial
from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from lifelong_core.develop.training.export.exported_model import RELATIVE_TOLERANCE, check_parity, export_onnx
from lifelong_core.develop.training.export.onnx_classifier import OnnxClassifier
from lifelong_core.images import decode, preprocess
from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError
from lifelong_core.values.preprocessing import CentreCrop, Preprocessing, Resize

SIZE = 12
PREPROCESSING = Preprocessing(
    resize=Resize(mode="shortest_edge", height=16, width=16, interpolation="bicubic"),
    centre_crop=CentreCrop(height=SIZE, width=SIZE),
    mean=(0.485, 0.456, 0.406),
    standard_deviation=(0.229, 0.224, 0.225),
)


def small_network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    network = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 3),
    )
    network.train()
    for _ in range(20):
        network(torch.randn(16, 3, SIZE, SIZE) * 3 + 1)
    return network


@pytest.fixture(scope="module")
def network() -> nn.Module:
    return small_network()


@pytest.fixture(scope="module")
def graph(network: nn.Module) -> bytes:
    return export_onnx(network, channels=3, height=SIZE, width=SIZE)


@pytest.fixture
def classifier(graph: bytes) -> OnnxClassifier:
    return OnnxClassifier(graph, PREPROCESSING, threads=1)


@pytest.fixture(scope="module")
def files() -> list[bytes]:
    rng = np.random.default_rng(0)
    made = []
    for number in range(6):
        file = BytesIO()
        Image.fromarray(rng.integers(0, 256, (20 + number, 30, 3), dtype=np.uint8)).save(file, "PNG")
        made.append(file.getvalue())
    return made


@pytest.fixture(scope="module")
def inputs(files: list[bytes]) -> np.ndarray:
    return np.stack([preprocess(decode(file, maximum_pixels=10_000), PREPROCESSING) for file in files])


def test_the_graph_gives_the_logits_of_the_model(network, classifier, inputs, files):
    parity = check_parity(
        network, classifier, inputs, [partial(classifier.logits_of_file, file) for file in files]
    )
    assert parity.images == 6
    assert parity.largest_difference < parity.tolerance / 10
    assert parity.largest_difference_through_service < parity.tolerance / 10


def test_the_export_leaves_the_model_as_it_was(network, graph):
    untouched = small_network()
    assert network.training
    assert all(
        torch.equal(one, other)
        for one, other in zip(network.state_dict().values(), untouched.state_dict().values(), strict=True)
    )


def test_any_number_of_images_is_classified_alike(classifier, inputs):
    together = classifier.logits(np.concatenate([inputs] * 50))
    assert together.shape == (300, 3)
    assert together.dtype == np.float32
    np.testing.assert_allclose(
        together[-6:], [classifier.logits(one[np.newaxis])[0] for one in inputs], atol=1e-5
    )


def test_another_normalisation_of_the_service_is_refused(network, graph, inputs, files):
    other = PREPROCESSING.model_copy(update={"mean": (0.485, 0.456, 0.42)})
    served = OnnxClassifier(graph, other, threads=1)
    with pytest.raises(InvalidInputError, match="gives other logits than the trained model") as caught:
        check_parity(network, served, inputs, [partial(served.logits_of_file, file) for file in files])
    assert caught.value.field == "architecture"


def test_another_crop_of_the_service_is_refused(network, graph, inputs, files):
    other = PREPROCESSING.model_copy(update={"resize": Resize(mode="shortest_edge", height=15, width=15)})
    served = OnnxClassifier(graph, other, threads=1)
    with pytest.raises(InvalidInputError, match="gives other logits"):
        check_parity(network, served, inputs, [partial(served.logits_of_file, files[0])])


def test_one_wrong_weight_is_refused(network, classifier, inputs):
    changed = copy.deepcopy(network)
    changed[6].weight.data[1, 3] += 0.05
    with pytest.raises(InvalidInputError, match="gives other logits"):
        check_parity(changed, classifier, inputs)


def test_other_statistics_of_normalisation_are_refused(network, classifier, inputs):
    changed = copy.deepcopy(network)
    changed[1].running_var *= 1.1
    with pytest.raises(InvalidInputError, match="gives other logits"):
        check_parity(changed, classifier, inputs)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_model_whose_logits_are_no_numbers_is_refused(network, classifier, inputs, value):
    changed = copy.deepcopy(network)
    changed[6].bias.data[0] = value
    with pytest.raises(InvalidInputError, match="logits that are not finite") as caught:
        check_parity(changed, classifier, inputs)
    assert caught.value.field == "learning_rate"


class Constant:
    """A graph that gives the same logits for every image."""

    def __init__(self, *logits: float) -> None:
        self._logits = np.array(logits, dtype=np.float32)

    def logits(self, inputs: np.ndarray) -> np.ndarray:
        return np.tile(self._logits, (len(inputs), 1))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_graph_whose_logits_are_no_numbers_is_refused(network, inputs, value):
    with pytest.raises(InvalidInputError, match="differ by inf"):
        check_parity(network, Constant(0, value, 0), inputs)


class Fixed:
    """A graph whose first axis was fixed: each image gets the logits of its place in a batch of two."""

    def __init__(self, module: nn.Module) -> None:
        self._module = copy.deepcopy(module).eval()

    def logits(self, inputs: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            found = self._module(torch.from_numpy(inputs)).numpy()
        return found if len(inputs) > 1 else found + 1


def test_a_graph_that_is_wrong_for_single_images_is_refused(network, inputs):
    with pytest.raises(InvalidInputError, match="differ by 1"):
        check_parity(network, Fixed(network), inputs)


def test_the_tolerance_grows_with_the_logits(network, inputs):
    constant = copy.deepcopy(network)
    constant[6].weight.data.zero_()
    constant[6].bias.data[:] = torch.tensor([500.0, -7.0, 0.0])
    parity = check_parity(constant, Constant(500.04, -7, 0), inputs)
    assert parity.tolerance == pytest.approx(500 * RELATIVE_TOLERANCE)
    with pytest.raises(InvalidInputError, match=r"differ by 0\.06, at most 0\.05"):
        check_parity(constant, Constant(500.06, -7, 0), inputs)


class Branching(nn.Module):
    """Its path depends on the values of the image: no graph can hold that."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.mean((2, 3)) if images.sum() > 0 else images.amax((2, 3))


def test_a_model_that_cannot_be_a_graph_is_refused():
    with pytest.raises(
        InvalidInputError, match="cannot be exported as an ONNX graph of 3 x 8 x 8 images"
    ) as caught:
        export_onnx(Branching(), channels=3, height=8, width=8)
    assert caught.value.field == "architecture"
    assert caught.value.hint


def test_a_file_is_read_within_limits(classifier, files):
    with pytest.raises(PayloadTooLargeError):
        classifier.logits_of_file(files[0], maximum_pixels=100)
    with pytest.raises(InvalidInputError):
        classifier.logits_of_file(b"no image")
