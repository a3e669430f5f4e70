"""Calibration sets and the preprocessing of their images: recorded, compared, and refused or reported if it differs."""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lifelong_core import images
from lifelong_core.deploy import LabeledLogits
from lifelong_core.images.preprocessing_digest import preprocessing_digest
from lifelong_core.store import register_calibration
from tests.unit.service.conftest import GREY, Service, calibration, png
from tests.unit.service.waiting import eventually

OWN = preprocessing_digest(GREY)
OTHER = "ab" * 32
SETS = "/v1/admin/models/linear/calibration-sets"
METRIC = "lifelong_models_with_other_preprocessing"


def made_with(digest: str | None, seed: int = 3) -> LabeledLogits:
    return replace(calibration(seed), preprocessing_digest=digest)


def document_of(labelled: LabeledLogits) -> dict[str, Any]:
    document = {"logits": labelled.logits.tolist(), "labels": labelled.labels.tolist()}
    return document | {"preprocessing_digest": labelled.preprocessing_digest}


def post(service: Service, labelled: LabeledLogits, query: str = "") -> Any:
    return service.client.post(
        f"{SETS}{query}", content=labelled.to_bytes(), headers={"Content-Type": "application/x-npz"}
    )


@pytest.fixture
def other_decoder(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on, images are decoded one grey level darker, as another library might."""
    original = images.decode

    def decode(*given: Any, **options: Any) -> Image.Image:
        image = original(*given, **options)
        return image if image.mode.startswith("I") else image.point(lambda level: max(level - 1, 0))

    return lambda: monkeypatch.setattr(images, "decode", decode)


def test_logits_of_images_name_their_preprocessing_and_the_set_keeps_it(service: Service) -> None:
    files = [("images", ("a", png(), "image/png"))]
    answer = service.client.post("/v1/admin/models/linear/logits", files=files).json()
    assert answer["preprocessing_digest"] == OWN
    for made, send in (
        (made_with(OWN, 3), lambda one: post(service, one)),
        (made_with(None, 4), lambda one: post(service, one)),
        (made_with(OWN, 5), lambda one: service.client.post(SETS, json=document_of(one))),
    ):
        added = send(made)
        assert added.status_code == 201, added.text
        assert added.json()["preprocessing_digest"] == made.preprocessing_digest
        shown = service.client.get(f"{SETS}/{added.json()['id']}").json()
        assert shown["preprocessing_digest"] == made.preprocessing_digest


def test_a_set_of_another_preprocessing_is_refused(service: Service) -> None:
    before = service.client.get(SETS).json()
    for query in ("", "?dry_run=true", "?force_reason=all the same"):
        for as_json in (False, True):
            made = made_with(OTHER)
            answer = (
                service.client.post(f"{SETS}{query}", json=document_of(made))
                if as_json
                else post(service, made, query)
            )
            error = answer.json()["error"]
            assert (answer.status_code, error["code"]) == (422, "other_preprocessing")
            assert error["field"] == "preprocessing_digest"
            assert "`lifelong calibrate linear@1 held_out/`" in error["hint"]
            assert service.client.get(SETS).json() == before


def test_a_digest_of_another_form_is_refused(service: Service) -> None:
    body = document_of(made_with(OWN)) | {"preprocessing_digest": OWN.upper()}
    answer = service.client.post(SETS, json=body)
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, "preprocessing_digest")


def test_external_models_take_any_digest(service: Service) -> None:
    answer = service.client.post(SETS.replace("linear", "remote"), json=document_of(made_with(OTHER)))
    assert answer.status_code == 201, answer.text


def test_after_a_change_of_the_decoder_the_old_set_is_reported_and_not_activated_again(
    registered: None,
    serve: Callable[..., Service],
    other_decoder: Callable[[], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = serve()
    eventually(lambda: before.client.post("/v1/predict", content=png()).status_code == 200)
    old = post(before, made_with(OWN)).json()["id"]
    eventually(lambda: before.worker.snapshot.registry.preprocessing_digests != {})
    assert before.client.get("/readyz").json()["degraded"] == []
    assert f"{METRIC} 0.0" in before.client.get("/metrics").text

    other_decoder()
    with caplog.at_level(logging.WARNING):
        after = serve()
        eventually(lambda: after.client.post("/v1/predict", content=png()).status_code == 200)
    ready = after.client.get("/readyz").json()
    assert ready["ready"] is True
    (said,) = ready["degraded"]
    assert "the calibration set of linear@1 was made with another preprocessing" in said
    assert "`lifelong calibrate linear@1 held_out/`" in said
    assert f"{METRIC} 1.0" in after.client.get("/metrics").text
    message = "the calibration set of a model was made with another preprocessing"
    logged = [one.__dict__["details"] for one in caplog.records if one.message == message]
    assert {"model": "linear@1"} in logged

    files = [("images", ("a", png(), "image/png"))]
    answer = after.client.post("/v1/admin/models/linear/logits", files=files).json()
    new = post(after, made_with(answer["preprocessing_digest"], 4))
    assert new.status_code == 201, new.text
    eventually(lambda: after.client.get("/readyz").json()["degraded"] == [])
    refused = after.client.post(f"{SETS}/{old}/activate")
    error = refused.json()["error"]
    assert (refused.status_code, error["field"]) == (422, "calibration_set")
    assert after.client.post(f"{SETS}/1/activate").status_code == 200  # made with an unknown one


def test_a_model_that_was_calibrated_otherwise_is_promoted_with_a_reason_only(
    registered: None, serve: Callable[..., Service], other_decoder: Callable[[], None]
) -> None:
    service = serve()
    register_calibration(service.store, "nan", made_with(OWN), actor="test")
    other_decoder()
    path = "/v1/admin/models/nan/promote"
    refused = service.client.post(path)
    assert (refused.status_code, refused.json()["error"]["field"]) == (409, "model")
    assert "another preprocessing" in refused.json()["error"]["message"]
    assert service.client.post(f"{path}?force_reason=measured").status_code == 200


def test_the_decoder_of_this_test_differs(other_decoder: Callable[[], None]) -> None:
    other_decoder()
    assert preprocessing_digest(GREY) != OWN
    assert np.asarray(images.decode(png(), maximum_pixels=10_000)).max() == 127
