"""A real service, scraped by a real Prometheus: the first failed prediction counts, although probes succeed."""

from pathlib import Path

from lifelong_core.store import register_calibration
from tests.integration.dashboards import BOARDS, expect_data
from tests.integration.installation import GREY, image, install, labelled_logits
from tests.integration.processes import eventually, running_service
from tests.integration.prometheus import prometheus

AT_ONCE = ("LifelongErrorRate", "LifelongNoPredictionAnswered")


def test_the_first_failed_predictions_are_counted_beside_probes_that_succeed(tmp_path: Path) -> None:
    installation = install(tmp_path)
    with installation.store() as store:
        # Its graph cannot be loaded, so every prediction by it is a 503.
        broken = store.models.add(
            "skin", "broken", kind="onnx", onnx=b"no graph", preprocessing=GREY, actor="test"
        )
        register_calibration(store, broken.reference, labelled_logits(), actor="test")
    with (
        running_service(tmp_path, installation.token) as service,
        prometheus(tmp_path, service.port, at_once=AT_ONCE) as monitoring,
    ):
        service.wait_for_workers()
        failed = 'lifelong_requests_total{route="/v1/predict",status="503"}'
        eventually(lambda: monitoring.value(f"sum({failed})") == 0, "the counter to be scraped at 0")
        for _ in range(3):
            for _ in range(30):
                assert service.send("GET", "/livez").status == 200
            reply = service.send("POST", f"/v1/predict?model={broken.name}", image())
            assert reply.status == 503, reply.content
        counted = f"sum(increase({failed}[10m])) > 2.5"
        eventually(lambda: monitoring.value(counted), "the failures to be counted, the first one included")
        eventually(
            lambda: {"LifelongErrorRate", "LifelongNoPredictionAnswered"} <= monitoring.firing(),
            "the alerts to fire",
        )
        assert service.send("POST", "/v1/predict", image()).status == 200
        eventually(
            lambda: "LifelongNoPredictionAnswered" not in monitoring.firing(), "a success to end the alert"
        )
        assert "LifelongErrorRate" in monitoring.firing()
        expect_data(monitoring, BOARDS["service"], {}, absent=("refused: {{limit}}", "{{reason}}", "Fault"))
