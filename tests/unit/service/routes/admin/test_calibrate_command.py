"""`lifelong calibrate` against a running service: its output and its exit status."""

import re
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
import uvicorn
from click.testing import CliRunner, Result

from lifelong.calibration import logits_of_images
from lifelong.cli import cli
from lifelong.client import Client
from lifelong.commands.models.calibration_text import print_report
from lifelong.labelled_images import LabelledImages
from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import LabeledLogits, TargetValue
from lifelong_core.deploy.calibration_acceptance.report import examine_calibration
from lifelong_core.images.preprocessing_digest import preprocessing_digest
from lifelong_core.store import Store
from lifelong_core.store.registry.registry import change_registry
from lifelong_core.store.registry.tasks import replace_decision_rule
from lifelong_core.values.errors import LifelongError
from lifelong_service.application import create_application
from tests.unit.service.conftest import CLASS_NAMES, COSTS, GREY, calibration, png
from tests.unit.service.onnx_graphs import EDGE, linear_weights

pytestmark = pytest.mark.usefixtures("registered")
FORCE = ("--force-because", "labels were read again")


@pytest.fixture
def swapped(tmp_path: Path) -> Path:
    data = calibration(3)
    path = tmp_path / "swapped.npz"
    path.write_bytes(LabeledLogits(data.logits, 2 - data.labels).to_bytes())
    return path


@pytest.fixture
def calibrate(settings: Settings, store: Store, secrets: dict[str, str]) -> Iterator[Callable[..., Result]]:
    """Runs the command in a terminal of 80 columns, against a server in this process."""
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    server = uvicorn.Server(
        uvicorn.Config(create_application(settings), ws="none", log_config=None, lifespan="on")
    )
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    yield lambda *arguments: CliRunner().invoke(
        cli,
        ("calibrate", "linear", *map(str, arguments), "--url", url, "--token", secrets["operate"]),
        env={"COLUMNS": "80"},
        catch_exceptions=False,
    )
    server.should_exit = True
    thread.join()
    listening.close()


def test_a_dry_run_says_what_the_real_run_does(
    calibrate: Callable[..., Result], store: Store, swapped: Path
) -> None:
    before = store.registry()
    refused = calibrate(swapped, "--dry-run")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("Refused: the labels of benign and malignant look swapped: ")
    forced = calibrate(swapped, "--dry-run", *FORCE)
    assert forced.exit_code == 0
    assert "Refused" not in forced.output
    assert "Forced: the labels of benign and malignant look swapped: " in forced.stdout
    told = "Dry run: nothing was published. It would be published, forced: labels were read again."
    assert " ".join(forced.stdout.split()).endswith(told)
    assert store.registry() == before
    published = calibrate(swapped, *FORCE)
    assert (published.exit_code, "Fitted head 2 of linear@1" in published.stdout) == (0, True)
    assert calibrate(swapped, "--dry-run").exit_code == 1


def test_a_set_from_images_keeps_how_they_were_preprocessed(
    calibrate: Callable[..., Result], store: Store, tmp_path: Path
) -> None:
    directions = linear_weights().T.reshape(3, EDGE, EDGE)
    rng = np.random.default_rng(0)
    for name, direction in zip(CLASS_NAMES, directions, strict=True):
        (tmp_path / "held_out" / name).mkdir(parents=True)
        for number in range(8):
            pixels = 128 + 60 * direction + rng.normal(scale=20, size=direction.shape)
            (tmp_path / "held_out" / name / f"{number}.png").write_bytes(png(pixels.clip(0, 255)))
    result = calibrate(tmp_path / "held_out", "--force-because", "few images")
    assert result.exit_code == 0, result.output
    record = store.calibration_sets.list("linear@1")[-1]
    assert (record.samples, record.preprocessing_digest) == (24, preprocessing_digest(GREY))


class TwoInstallations(Client):
    """A service whose workers answer in turn, and differ."""

    def __init__(self, *digests: str | None) -> None:
        super().__init__("http://127.0.0.1:9", None)
        self._digests = cycle(digests)

    def logits_of(self, model: str, images: Sequence[bytes]) -> tuple[list[list[float]], str | None]:
        del model
        return [[0.0, 1.0]] * len(images), next(self._digests)


def test_workers_that_preprocess_differently_make_no_set(tmp_path: Path) -> None:
    paths = tuple(tmp_path / f"{number}.png" for number in range(40))
    for path in paths:
        path.write_bytes(b"image")
    images = LabelledImages(tmp_path, paths, (0, 1) * 20)
    for digests in (("ab" * 32, "cd" * 32), ("ab" * 32, None)):
        with (
            TwoInstallations(*digests) as api,
            pytest.raises(LifelongError, match="preprocess images differently"),
        ):
            logits_of_images(api, "net", images, on_images=lambda _: None)
    for digest in ("ab" * 32, None):
        with TwoInstallations(digest) as api:
            labelled = logits_of_images(api, "net", images, on_images=lambda _: None)
        assert (labelled.samples, labelled.preprocessing_digest) == (40, digest)


def test_the_rule_of_the_head_and_what_it_will_reach_are_said(
    calibrate: Callable[..., Result], store: Store, tmp_path: Path
) -> None:
    (tmp_path / "good.npz").write_bytes(calibration(4).to_bytes())
    assert (
        "The head decides by this rule: least expected cost."
        in calibrate(tmp_path / "good.npz", "--dry-run").stdout
    )
    task = store.tasks.get("skin")
    with change_registry(store.database) as connection:
        replace_decision_rule(connection, task, TargetValue("TPR", 0.8, 2), actor="test", details={})
    for options in (("--dry-run",), ()):
        said = " ".join(calibrate(tmp_path / "good.npz", *options).stdout.split())
        name = task.class_names[2]
        rule = f"sensitivity of {name} at least 0.8, then the best specificity (cut-off 0."
        assert f"The head decides by this rule: {rule}" in said
        assert re.search(rf"With it: sensitivity of {name} 0\.\d\d \(0\.\d\d to \d\.\d\d\) expected at", said)


def test_an_accepted_set_would_be_published(calibrate: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "good.npz").write_bytes(calibration(4).to_bytes())
    answer = calibrate(tmp_path / "good.npz", "--dry-run")
    assert answer.exit_code == 0
    assert answer.stdout.endswith("Dry run: nothing was published. It would be published.\n")


def test_a_refusal_is_one_block_for_each_finding_within_the_terminal(
    calibrate: Callable[..., Result], swapped: Path
) -> None:
    trial, real = calibrate(swapped, "--dry-run"), calibrate(swapped)
    assert (real.exit_code, real.output) == (1, trial.output)
    lines = real.output.splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("Refused: ") for line in lines) >= 2
    assert "present head 1" in real.stdout
    assert "for the class mix of this set" in real.stdout
    assert "--force-because" in real.stderr


def test_figures_have_equally_many_digits_and_no_negative_zero(capsys: pytest.CaptureFixture[str]) -> None:
    data = calibration(5)
    document = examine_calibration(data, np.asarray(COSTS), CLASS_NAMES).to_document()
    figures = document["new"]
    figures["calibration_error"] = {"value": -0.0001, "low": -0.02, "high": 0.02}
    figures["expected_cost"] = {"value": 0.5, "low": 0.443, "high": 0.6}
    document["constant_cost"] = 0.05
    print_report(document)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "calibration error new head 0.0 % -2.0 to +2.0 %" in lines
    assert "expected cost new head 0.500 0.443 to 0.600" in lines
    assert "prevalence alone 0.050" in lines
