"""Where registered models look: their stored graphs, the decisions of the head, and a sample of the labelled images."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from lifelong_core.deploy.labelled_set import LabelledSet
from lifelong_core.deploy.paired_set import PairedSet
from lifelong_core.develop.features.sources.opening import open_images
from lifelong_core.develop.training.export.onnx_classifier import OnnxClassifier
from lifelong_core.promotion import PromotionReport
from lifelong_core.store import Model, Store, register_calibration
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_monitor.jobs.kinds.localization import compare_places
from lifelong_monitor.jobs.running.work import work_of
from tests.unit.develop.features.drawn import draw_images
from tests.unit.monitor.population import BALANCED, CLASS_NAMES, COSTS, draw
from tests.unit.monitor.recommendations import RECOMMENDED
from tests.unit.service import onnx_graphs

GREY = Preprocessing(colour="grey")


def blobs(*, shift: int = 0) -> bytes:
    """Logits: how bright the place of each class is; shifted to the right, another place of the images."""
    weights = np.zeros((20, 20, 3), dtype=np.float32)
    for place in range(3):
        weights[place * 4 : place * 4 + 6, 3 + shift : 9 + shift, place] = 1
    graph = helper.make_graph(
        [
            helper.make_node("Flatten", ["image"], ["pixels"]),
            helper.make_node("MatMul", ["pixels", "weights"], ["logits"]),
        ],
        "graph",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 20, 20])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 3])],
        [numpy_helper.from_array(weights.reshape(400, 3), "weights")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.checker.check_model(model)
    return model.SerializeToString()


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "lesions"
    draw_images(folder, 24, classes=CLASS_NAMES)
    (folder / "benign" / "0000.png").write_bytes(b"no image")
    draw_images(folder, 2, classes=("unknown class", "another"))
    return folder


def added(store: Store, graph: bytes) -> Model:
    if "blobs" not in {task.name for task in store.tasks.list()}:
        store.tasks.add("blobs", CLASS_NAMES, COSTS, actor="tests")
    made = store.models.add("blobs", "blobs", kind="onnx", onnx=graph, preprocessing=GREY, actor="tests")
    register_calibration(store, made.reference, draw(BALANCED, 600, seed=1), actor="tests")
    return store.models.get(made.reference)


def test_models_are_compared_on_a_sample_of_the_labelled_images(
    store: Store, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    same, moved = added(store, blobs()), added(store, blobs(shift=8))
    source = open_images(images)
    found = compare_places(store, same, same, source, most=9)
    assert found.images in (8, 9)
    assert found.examples == ()
    assert [one.mean for one in found.scores] == pytest.approx([1] * 9)
    elsewhere = compare_places(store, moved, same, source, most=9)
    assert {one.name: one.mean for one in elsewhere.scores}["positive overlap"] == pytest.approx(0, abs=0.2)
    monkeypatch.setenv("LIFELONG_REPORT_IMAGES", "3")
    shown = compare_places(store, same, same, source)
    assert shown.images == 23  # one is unreadable, two are of other classes
    assert len(shown.examples) == 3
    hurried = compare_places(store, same, same, source, seconds=0)
    assert hurried.images in (7, 8)
    assert {one.name for one in shown.examples} <= {f"{CLASS_NAMES[k % 3]}/{k:04}.png" for k in range(24)}


def test_only_the_named_images_are_sampled(
    store: Store, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIFELONG_REPORT_IMAGES", "9")
    model = added(store, blobs())
    wanted = ["unclear/0001.png", "malignant/0005.png", "benign/0003.png"]
    found = compare_places(store, model, model, open_images(images), names=wanted)
    assert sorted(str(one.name) for one in found.examples) == sorted(wanted)
    by_name = {one.name: one for one in found.examples}
    assert by_name["malignant/0005.png"].true_class == 2
    head = store.heads.get(model.reference, 1).head
    classifier = OnnxClassifier(blobs(), GREY)
    for name, one in by_name.items():
        logits = classifier.logits_of_file((images / str(name)).read_bytes())[np.newaxis]
        assert one.class_index == head.apply(logits).decisions[0]


def test_models_without_a_graph_or_without_images_are_not_compared(
    store: Store, images: Path, model: Model
) -> None:
    own = added(store, blobs())
    source = open_images(images)
    assert compare_places(store, own, model, source) is None
    assert compare_places(store, own, own, source, names=["benign/0000.png"]) is None
    assert compare_places(store, own, own, source, names=[]) is None


def test_a_comparison_tells_where_both_look_if_it_names_images(
    store: Store, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIFELONG_IMAGE_ROOTS", f'["{images.parent}"]')
    new, current = added(store, blobs(shift=8)), added(store, blobs())
    store.recommendations.attach("blobs", RECOMMENDED, thresholds=(), actor="tests")
    cases = draw(BALANCED, 12, seed=3)
    names = [f"{CLASS_NAMES[k % 3]}/{k:04}.png" for k in range(11)] + ["of another folder"]
    data = PairedSet(LabelledSet(cases), cases.logits, np.array(names))

    def compare(data: PairedSet, path: str, against: str = current.reference) -> PromotionReport:
        asked = {
            "task": "blobs",
            "model": new.reference,
            "against": against,
            "recommendation_version": 1,
            "labelled_set": store.artifacts.put(data.to_bytes()),
            "images": path,
            "replicates": 100,
        }
        found = work_of("compare")(store, store.jobs.submit("compare", asked, actor="tests"))
        return PromotionReport.from_json(store.artifacts.get(found["result"]))

    report = compare(data, str(images))
    assert report.localization.images == 10  # of eleven names, one is unreadable
    nameless = PairedSet(LabelledSet(cases), cases.logits, None)
    everything = compare(nameless, str(images)).localization
    assert everything.images == 23
    strangers = PairedSet(LabelledSet(cases), cases.logits, np.array([f"case {row}" for row in range(12)]))
    for wrong, path in ((strangers, str(images)), (data, "/elsewhere")):
        with pytest.raises(InvalidInputError):
            compare(wrong, path)


@pytest.mark.parametrize(
    ("graph", "kind"),
    [
        (onnx_graphs.linear(batch=1), "three logits"),
        (onnx_graphs.linear(batch=4), "three logits"),
        (onnx_graphs.linear(element=TensorProto.FLOAT16), "three logits"),
        (onnx_graphs.one_logit(rank=1), "one logit"),
        (onnx_graphs.one_logit(rank=2), "one logit"),
        (onnx_graphs.one_logit(element=TensorProto.UINT8), "one logit of grey values"),
    ],
)
def test_graphs_of_all_kinds_that_are_served_give_logits(graph: bytes, kind: str) -> None:
    greys = np.random.default_rng(0).integers(0, 256, (7, 1, 4, 4))
    inputs = (greys / np.float32(255)).astype(np.float32)
    mean = inputs.mean(axis=(1, 2, 3), dtype=np.float64) - 0.5
    expected = {
        "three logits": inputs.reshape(7, -1) @ onnx_graphs.linear_weights(),
        "one logit": np.stack([0 * mean, mean], axis=1),
        "one logit of grey values": np.stack([0 * mean, 255 * mean], axis=1),
    }[kind]
    found = OnnxClassifier(graph, GREY).logits(inputs)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=5e-3)
