"""The Python client and the command line against a service of another host: only its address and a token are known."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from lifelong import AsyncClient, Client
from lifelong_core.operations.design.interviews import EXAMPLE_ANSWERS
from lifelong_core.operations.heads import ListHeads, NewPin, Unpin
from lifelong_core.values.errors import ConflictError
from tests.integration.installation import Installation, image, install
from tests.integration.processes import Service, running_service


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return install(tmp_path_factory.mktemp("client"))


@pytest.fixture(scope="module")
def url(installation: Installation) -> Iterator[str]:
    folder = installation.settings.data_directory.parent
    with running_service(folder, installation.token, workers=1) as service:
        service.wait_until_ready()
        yield address(service)


def address(service: Service) -> str:
    return f"http://127.0.0.1:{service.port}"


def test_a_repeated_prediction_gets_its_first_answer(url: str, installation: Installation) -> None:
    with Client(url, installation.token) as client:
        first = client.predict(image(), environment="clinic-a", group="p1", request_id="study-1")
        again = client.predict(image(), environment="clinic-a", group="p1", request_id="study-1")
        assert again == first
        other = client.predict(image(), environment="clinic-a")
        assert other["prediction_id"] != first["prediction_id"]
        answer = client.feedback([{"prediction_id": first["prediction_id"], "label": "benign"}])
        assert answer["labels"][0]["outcome"] == "stored"


def test_asynchronous_calls_say_the_same(url: str, installation: Installation) -> None:
    async def ask() -> tuple[int, int]:
        async with AsyncClient(url, installation.token) as client:
            answer = await client.logits(np.zeros((2, 3)), model="remote", environment="clinic-a")
            heads = await client.send(ListHeads(model="remote"))
            return len(answer["predictions"]), heads.heads[0].version

    assert asyncio.run(ask()) == (2, 1)


def test_operations_have_typed_answers_and_refusals_their_reason(
    url: str, installation: Installation
) -> None:
    with Client(url, installation.token) as client:
        pin = client.send(NewPin(model="linear", reason="a test"))
        assert (pin.environment, pin.reason, pin.pinned_by) == (None, "a test", "admin")
        with pytest.raises(ConflictError, match="pinned"):
            client.send(NewPin(model="linear", reason="another test"))
        assert client.send(Unpin(model="linear")).pins == []


def test_commands_work_on_a_remote_service_and_never_on_the_store_of_this_host_instead(
    url: str, installation: Installation, tmp_path: Path
) -> None:
    remote = {"LIFELONG_URL": url, "LIFELONG_TOKEN": installation.token}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "lifelong", *words]
        return subprocess.run(
            line, cwd=tmp_path, env=os.environ | remote, capture_output=True, text=True, check=False
        )

    published = json.loads(run("heads", "list", "linear", "--json").stdout)
    assert [row["version"] for row in published] == [1]
    assert run("environments", "add", "clinic-b").stdout == "The environment clinic-b is there.\n"
    with installation.store() as store:
        assert "clinic-b" in store.environments.list()
        (entry,) = store.audit.list(1, action="environments", subject="clinic-b")
        assert entry.actor == "admin"
    assert json.loads(run("cycles", "list", "--json").stdout) == []
    unknown = run("heads", "approve", "01a2")
    assert (unknown.returncode, "there is no cycle 01a2" in unknown.stderr) == (1, True)
    refused = run("audit", "verify")
    assert refused.returncode == 1
    assert "LIFELONG_URL" in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_recommendation_is_attached_to_a_task_of_a_remote_service(
    url: str, installation: Installation, tmp_path: Path
) -> None:
    remote = {"LIFELONG_URL": url, "LIFELONG_TOKEN": installation.token}

    def run(*words: str) -> str:
        line = [sys.executable, "-m", "lifelong", *words]
        return subprocess.run(
            line, cwd=tmp_path, env=os.environ | remote, capture_output=True, text=True, check=True
        ).stdout

    (tmp_path / "answers.json").write_text(json.dumps(EXAMPLE_ANSWERS))
    labels = np.arange(90) % 3
    np.savez(tmp_path / "test.npz", labels=labels, probabilities=np.eye(3)[labels] * 0.7 + 0.1)
    attached = run("recommend", "--answers", "answers.json", "--attach", "skin")
    assert "Recommendation 1 is attached to skin." in attached
    judged = json.loads(run("validate", "test.npz", "--task", "skin", "--replicates", "100", "--json"))
    assert judged["class_names"] == ["benign", "unclear", "malignant"]
    (listed,) = json.loads(run("calibration-sets", "list", "remote", "--json"))
    assert (listed["active"], listed["preprocessing"]) == (True, "unknown")
    with installation.store() as store:
        assert store.recommendations.get("skin", 1).created_by == "admin"
