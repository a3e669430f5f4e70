"""Costly images on their way through the service: the same answers as cheap ones, without delay for other requests."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO

import pytest
from PIL import Image

from lifelong_core.values.preprocessing import CentreCrop, Preprocessing, Resize
from lifelong_service.decoding import decoder
from lifelong_service.prediction import batch_pipeline
from lifelong_service.prediction.requests import ImageRequest, RequestContext
from tests.attacks.images import elongated_png, progressive_jpeg, rle_bmp, webp_canvas
from tests.unit.service.conftest import Service, png
from tests.unit.service.waiting import eventually

CROP_224 = CentreCrop(height=224, width=224)
SHORTEST_256 = Resize(mode="shortest_edge", height=256, width=256)


def tiff(value: int) -> bytes:
    """The same pixels as `png(value)`, in a format that is decoded in the other process."""
    file = BytesIO()
    Image.open(BytesIO(png(value))).save(file, "TIFF", compression="tiff_lzw")
    return file.getvalue()


def test_a_costly_image_gets_the_same_answer_as_a_cheap_one(service: Service) -> None:
    cheap = service.client.post("/v1/predict", content=png(90)).json()
    costly = service.client.post("/v1/predict", content=tiff(90))
    assert costly.status_code == 200
    assert costly.json()["probabilities"] == cheap["probabilities"]
    assert costly.json()["model"] == cheap["model"]
    logits = [
        service.client.post("/v1/admin/models/linear/logits", files={"images": image}).json()["logits"]
        for image in (png(90), tiff(90))
    ]
    assert logits[0] == logits[1]


def test_a_repeated_id_gets_its_first_answer_whatever_became_of_the_image(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = service.client.post("/v1/predict?request_id=r1", content=tiff(90))
    monkeypatch.setattr(decoder, "MAXIMUM_WAITING", 0)
    assert service.client.post("/v1/predict?request_id=r1", content=tiff(90)).json() == first.json()
    assert service.client.post("/v1/predict?request_id=r1", content=tiff(91)).status_code == 409
    refused = service.client.post("/v1/predict?request_id=r2", content=tiff(90))
    assert refused.status_code == 503
    assert refused.headers["retry-after"]
    assert service.client.post("/v1/predict", content=tiff(90)).status_code == 503
    assert service.client.post("/v1/predict", content=png(90)).status_code == 200
    assert service.logged() == 2


def test_an_image_counts_by_what_it_becomes(service: Service) -> None:
    for size, resize, crop, weight, preparation_weight in (
        ((64, 64), SHORTEST_256, None, 1, 0),
        ((200, 200), SHORTEST_256, None, 1, 1),
        ((1000, 1000), SHORTEST_256, None, 1, 4),
        ((1, 100), SHORTEST_256, None, 25, 25),
        ((1, 100), SHORTEST_256, CROP_224, 1, 25),
        ((1, 100), Resize(mode="shortest_edge", height=2048, width=2048), CROP_224, 1, 0),
        ((64, 64), Resize(height=1024, width=1024), None, 4, 4),
        ((64, 64), None, None, 1, 0),
    ):
        file = BytesIO()
        Image.new("L", size).save(file, "PNG")
        snapshot = service.worker.snapshot
        preprocessing = Preprocessing(resize=resize, centre_crop=crop)
        classifiers = {
            key: replace(one, preprocessing=preprocessing) for key, one in snapshot.classifiers.items()
        }
        request = ImageRequest(RequestContext(None, "clinic", None, None), file.getvalue())
        seen = replace(snapshot, classifiers=classifiers)
        decoder = service.worker.decoder
        prepared = asyncio.run(decoder.prepare(request, seen))
        assert (prepared.weight, prepared.preparation_weight) == (weight, preparation_weight)
        assert prepared.preparation_weight == 0 or decoder.decode_cheap(prepared, seen).weight == weight


def test_bombs_are_refused_by_their_headers(service: Service) -> None:
    for make, status in (
        (lambda: progressive_jpeg(256, 2000), 413),
        (lambda: webp_canvas(7000), 413),
        (lambda: rle_bmp(2000), 422),
        (elongated_png, 413),
    ):
        refused = service.client.post("/v1/predict", content=make())
        assert refused.status_code == status
        assert refused.json()["error"]["field"] == "image"
        assert service.worker.decoder._process._process is None


def test_a_batch_that_does_not_end_makes_the_worker_unready(
    registered: None, serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = serve(request_timeout_seconds=1)
    go_on = threading.Event()
    model_input = batch_pipeline.model_input

    def hang(*arguments: object, **named: object) -> object:
        assert go_on.wait(30)
        return model_input(*arguments, **named)

    monkeypatch.setattr(batch_pipeline, "model_input", hang)
    assert service.client.post("/v1/predict", content=png(9)).status_code == 503
    eventually(lambda: service.client.get("/readyz").status_code == 503)
    assert "has not finished a batch" in service.client.get("/readyz").json()["reasons"][0]
    go_on.set()
    eventually(lambda: service.client.get("/readyz").status_code == 200)
