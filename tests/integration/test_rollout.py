"""A candidate goes from shadow to canary to promotion and back under load, with two real workers."""

import itertools
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
from PIL import Image

from lifelong_core.deploy import LabeledLogits
from lifelong_core.images import decode, preprocess
from lifelong_core.store import Store, promote_calibrated, register_calibration, start_trial
from lifelong_core.store.log.identifiers import shadow_prediction_id
from lifelong_core.values.arrays import Logits
from lifelong_service.graphs.loader import load_classifier
from tests.integration.installation import Installation, install
from tests.integration.processes import Connection, Load, Reply, Service, eventually, running_service
from tests.unit.service import onnx_graphs

GROUPS = 40
REPLIES = 100
"""Answers from all workers that a stage gets at least."""


@dataclass(frozen=True)
class Answer:
    """One answer, the image and the group that it is about."""

    image: int
    group: str
    reply: Reply

    @property
    def version(self) -> int:
        return self.reply.body["model_version"]


@dataclass(frozen=True)
class Expected:
    """What each version of the model makes of each image."""

    logits: Mapping[tuple[int, int], Logits]
    """by version and image"""
    probabilities: Mapping[tuple[int, int], list[float]]

    def matches(self, answer: Answer, version: int) -> bool:
        found = list(answer.reply.body["probabilities"].values())
        return bool(np.allclose(found, self.probabilities[version, answer.image], rtol=1e-4, atol=1e-7))


def picture(seed: int) -> bytes:
    file = BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 255, (16, 16), dtype=np.uint8)
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


IMAGES = [picture(seed) for seed in range(6)]


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """With the candidate linear@2, whose logits are -2 times those of the promoted linear@1."""
    made = install(tmp_path_factory.mktemp("rollout"))
    with made.store() as store:
        first = store.models.get("linear@1")
        second = store.models.add(
            "skin",
            "linear",
            kind="onnx",
            onnx=onnx_graphs.scaled(-2),
            preprocessing=first.preprocessing,
            actor="test",
        )
        rng = np.random.default_rng(1)
        labels = np.tile(np.arange(3), 60)
        logits = (np.eye(3)[labels] * 3 + rng.normal(size=(180, 3))).astype(np.float32)
        register_calibration(store, second.reference, LabeledLogits(logits, labels), actor="test")
        store.environments.ensure("load", limit=9)
    return made


@pytest.fixture(scope="module")
def service(installation: Installation) -> Iterator[Service]:
    folder: Path = installation.settings.data_directory.parent
    with running_service(folder, installation.token, registry_poll_seconds=0.1) as started:
        started.wait_for_workers()
        yield started


def expectations(store: Store) -> Expected:
    logits: dict[tuple[int, int], Logits] = {}
    probabilities: dict[tuple[int, int], list[float]] = {}
    for version in (1, 2):
        model = store.models.get(f"linear@{version}")
        assert model.preprocessing is not None
        graph = store.artifacts.get(model.artifact or "")
        classifier = load_classifier(graph, model.preprocessing, classes=3)
        head = store.heads.get(model.reference, 1).head
        for index, content in enumerate(IMAGES):
            image = decode(content, maximum_pixels=10_000)
            rows = classifier.logits([preprocess(image, model.preprocessing, maximum_pixels=10_000)])
            logits[version, index] = rows[0]
            probabilities[version, index] = head.apply(rows).probabilities[0].tolist()
    return Expected(logits, probabilities)


def settle(store: Store) -> None:
    """Wait until every worker serves the present registry."""
    registry = store.registry()
    assert registry is not None
    eventually(
        lambda: all(worker.revision >= registry.revision for worker in store.workers.list()),
        "the workers to take over a change",
    )


def test_no_request_fails_from_shadow_to_roll_back(service: Service, installation: Installation) -> None:
    numbers = itertools.count()

    def request(connection: Connection) -> Answer:
        number = next(numbers)
        image, group = random.Random(number).randrange(len(IMAGES)), f"patient-{number % GROUPS}"
        reply = connection.send("POST", f"/v1/predict?environment=load&group={group}", IMAGES[image])
        return Answer(image, group, reply)

    def repeated() -> bytes:
        return service.send("POST", "/v1/predict?environment=load&request_id=once", IMAGES[0]).content

    with installation.store() as store, Load(service, request) as load:

        def stage(change: Callable[[], object]) -> list[Answer]:
            """Make a change, and return answers to requests that were sent when both workers had taken it over."""
            change()
            settle(store)
            begun, seen = time.monotonic(), set[str]()
            found: list[Answer] = []
            while len(found) < REPLIES or seen != {"1", "2"}:
                time.sleep(0.05)
                found = [answer for answer in list(load.results) if answer.reply.sent_at > begun]
                seen = {answer.reply.worker for answer in found}
            copies.append(repeated())
            return found

        def trial(name: str, share: float = 0.0) -> Callable[[], object]:
            return lambda: start_trial(store, "linear@2", stage=name, share=share, actor="test")  # type: ignore[arg-type]

        copies = [repeated()]
        shadow = stage(trial("shadow"))
        few = stage(trial("canary", 0.3))
        many = stage(trial("canary", 0.7))
        promoted = stage(lambda: promote_calibrated(store, "linear@2", actor="test"))
        back = stage(lambda: store.promotions.roll_back("skin", actor="test"))

    assert load.faults == []
    assert {answer.reply.status for answer in load.results} == {200}
    assert len(set(copies)) == 1
    with installation.store() as store:
        expected = expectations(store)
        for answer in load.results:
            assert expected.matches(answer, answer.version)
            assert not expected.matches(answer, 3 - answer.version)  # so the check can fail
            check_log(store, answer, expected)
        check_shadows(store, shadow, expected)
    assert {answer.version for answer in [*shadow, *back]} == {1}
    assert {answer.version for answer in promoted} == {2}
    few_groups, many_groups = (chosen(answers) for answers in (few, many))
    assert 0 < len(few_groups) < len(many_groups) < GROUPS
    assert few_groups < many_groups


def check_log(store: Store, answer: Answer, expected: Expected) -> None:
    """The log holds the answer under the version that it names, with its logits."""
    logged = store.predictions.get(UUID(answer.reply.body["prediction_id"]))
    assert logged is not None
    assert logged.model_id == store.models.get(f"linear@{answer.version}").id
    np.testing.assert_allclose(
        logged.logits, expected.logits[answer.version, answer.image], rtol=1e-4, atol=1e-5
    )


def check_shadows(store: Store, answers: list[Answer], expected: Expected) -> None:
    """The answers of the stage shadow have predictions of the candidate, but for those that the queue left out."""
    found = 0
    for answer in answers:
        shadow = store.predictions.get(shadow_prediction_id(UUID(answer.reply.body["prediction_id"])))
        if shadow is not None:
            found += 1
            assert shadow.model_id == store.models.get("linear@2").id
            np.testing.assert_allclose(shadow.logits, expected.logits[2, answer.image], rtol=1e-4, atol=1e-5)
    assert found > len(answers) / 4


def chosen(answers: list[Answer]) -> set[str]:
    """The groups that the canary answers; each group gets the same model from both workers."""
    versions: dict[str, set[int]] = {}
    for answer in answers:
        versions.setdefault(answer.group, set()).add(answer.version)
    assert all(len(found) == 1 for found in versions.values())
    return {group for group, found in versions.items() if found == {2}}
