"""Output of PyTorch's default exporter is added on the command line, and served after a restart."""

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from click.testing import CliRunner

from lifelong.cli import cli
from lifelong_core.deploy import LabeledLogits
from lifelong_core.develop.evaluation_transforms import declare_missing_operators
from lifelong_core.store import Store, promote_calibrated
from lifelong_core.values.errors import InvalidInputError
from lifelong_service.graphs.rules import check_rules
from tests.unit.service.conftest import Service, png


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with model.onnx and, as the exporter decides, model.onnx.data."""
    folder = tmp_path_factory.mktemp("exported")
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(1, 64, 3),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(64, 3),
    ).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        images = torch.zeros(2, 1, 8, 8)
        path = str(folder / "model.onnx")
        torch.onnx.export(network, (images,), path, dynamic_shapes=({0: "batch"},), verbose=False)
    return folder


@pytest.mark.parametrize(
    ("architecture", "edge", "opset", "free"),
    [
        ("mobilevitv2_050", 64, 11, ()),
        ("pvt_v2_b0", 64, 17, (0, 2, 3)),
        ("vit_tiny_patch16_224", 224, 20, (0, 2, 3)),
    ],
)
def test_sizes_that_a_real_graph_computes_from_shapes_are_taken(
    architecture: str, edge: int, opset: int, free: tuple[int, ...], tmp_path: Path
) -> None:
    declare_missing_operators()
    timm = pytest.importorskip("timm")
    options = {"dynamic_img_size": True} if architecture.startswith("vit") else {}
    network = timm.create_model(architecture, pretrained=False, **options).eval()
    axes = {"image": {axis: f"axis{axis}" for axis in free}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            (torch.zeros(2, 3, edge, edge),),
            str(tmp_path / "model.onnx"),
            dynamo=False,
            opset_version=opset,
            input_names=["image"],
            dynamic_axes=axes,
        )
    check_rules(onnx.load(tmp_path / "model.onnx"))


def test_external_data_is_served_after_a_restart(
    exported: Path,
    tmp_path: Path,
    store: Store,
    serve: Callable[..., Service],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (exported / "model.onnx.data").stat().st_size > 0, "the exporter keeps weights in the graph now"
    monkeypatch.setenv("LIFELONG_DATA_DIRECTORY", str(tmp_path))
    labels = np.tile(np.arange(3), 60)
    noise = np.random.default_rng(0).normal(size=(180, 3))
    (tmp_path / "calibration.npz").write_bytes(
        LabeledLogits(2 * np.eye(3)[labels] + noise, labels).to_bytes()
    )
    (tmp_path / "preprocessing.json").write_text('{"colour": "grey", "mean": [0], "standard_deviation": [1]}')
    copy = tmp_path / "elsewhere"
    copy.mkdir()
    for name in ("model.onnx", "model.onnx.data"):
        (copy / name).write_bytes((exported / name).read_bytes())

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    run("tasks", "add", "skin", "--classes", "a,b,c")
    add = ["models", "add", "net", "--task", "skin", "--onnx", str(copy / "model.onnx")]
    add += ["--preprocessing", str(tmp_path / "preprocessing.json")]
    said = run(*add, "--calibration", str(tmp_path / "calibration.npz"))
    assert "no worker is running" in said
    assert "served now" not in said
    (copy / "model.onnx.data").unlink()
    monkeypatch.chdir(copy)
    for _ in range(2):
        service = serve()
        assert service.client.get("/readyz").json()["failed_models"] == {}
        answer = service.client.post("/v1/predict", content=png(7, size=8))
        assert answer.status_code == 200, answer.text
        assert "served now: it is promoted and run by" in run("models", "promote", "net")
    with pytest.raises(InvalidInputError, match=r"'model\.onnx\.data', which is not there"):
        run(*add)
    assert [model.reference for model in store.models.list()] == ["net@1"]


def test_promoting_without_a_worker_checks_the_stored_graph(
    registered: None, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lifelong_core.values.errors import ConflictError

    monkeypatch.setenv("LIFELONG_DATA_DIRECTORY", str(tmp_path))
    artifact = store.models.get("linear").artifact
    assert artifact is not None
    assert CliRunner().invoke(cli, ["models", "promote", "linear"], catch_exceptions=False).exit_code == 0
    promote_calibrated(store, "table", actor="test")
    store.artifacts.path(artifact).write_bytes(b"damaged")
    with pytest.raises(ConflictError, match="linear@1 cannot be loaded"):
        CliRunner().invoke(cli, ["models", "promote", "linear"], catch_exceptions=False)
    assert store.tasks.get("skin").promoted_model_id == store.models.get("table").id


def test_a_provider_that_cannot_be_used_keeps_the_service_from_starting_and_a_model_from_being_added(
    registered: None, store: Store, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lifelong_core.configuration.settings import Settings
    from lifelong_core.values.errors import ConfigurationError
    from lifelong_service.process.checks import check_database

    monkeypatch.setenv("LIFELONG_DATA_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("LIFELONG_EXECUTION_PROVIDERS", '["QNNExecutionProvider"]')
    add = ["models", "add", "net", "--task", "skin", "--onnx", str(exported / "model.onnx")]
    for call in (
        lambda: CliRunner().invoke(cli, add, catch_exceptions=False),
        lambda: check_database(Settings.load()),
    ):
        with pytest.raises(ConfigurationError, match="QNNExecutionProvider is not in this inst") as refused:
            call()
        assert refused.value.field == "LIFELONG_EXECUTION_PROVIDERS"
