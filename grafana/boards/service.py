"""The dashboard of the serving processes: requests, latency, batches, decoding, GPU, spool, workers."""

from grafana.dashboard import Board
from grafana.grids import Column, draw_bars, draw_heatmap, show_table
from grafana.links import link_runbook
from grafana.panels import HALF, QUARTER, THIRD, Display, Panel, plot_series, show_numbers
from grafana.queries import rate_of
from grafana.variables import choose_instances
from grafana.words import FAULTS

_HERE = 'instance=~"$instance"'
_PREDICTIONS = f'{_HERE},route=~"/v1/(predict|logits)"'
"""Label matchers of requests for predictions; others would hide their failures and latency."""
_ERROR_RATE = 0.05
"""LifelongErrorRate fires above it."""


def _quantile(share: float, histogram: str, matchers: str = _HERE) -> str:
    rate = f"rate({histogram}_bucket{{{matchers}}}[$__rate_interval])"
    return f"histogram_quantile({share}, sum by (le) ({rate}))"


def _state() -> list[Panel]:
    def of_a_day(status: str) -> str:
        return f'sum(increase(lifelong_requests_total{{{_PREDICTIONS},status=~"{status}"}}[1d]))'

    return [
        show_numbers(
            "Predictions within a day",
            "Requests to /v1/predict and /v1/logits within 24 hours. failed: answered with 5xx, or not at all."
            " rejected: the client's mistake (4xx). Probes, scrapes and other routes do not count.",
            {"answered": of_a_day("2.."), "rejected": of_a_day("4.."), "failed": of_a_day("5..|none")},
            Display("short", "no request yet", HALF, text="value_and_name"),
        ),
        show_numbers(
            "Workers",
            "Serving processes that live, of all chosen instances.",
            {"workers": f"sum(lifelong_workers{{{_HERE}}})"},
            Display("short", "no service", thresholds=((None, "red"), (1, "green"))),
        ),
        show_numbers(
            "Processes down",
            "Services and monitors that Prometheus does not reach.",
            {"down": f'count(up{{job=~"lifelong-.*",{_HERE}}} == 0) or vector(0)'},
            Display(
                "short",
                "unknown",
                thresholds=((None, "green"), (1, "red")),
                links=[link_runbook("LifelongServiceDown")],
            ),
        ),
    ]


def _requests() -> list[Panel]:
    """Rate, errors, duration."""
    rate = f"rate(lifelong_requests_total{{{_PREDICTIONS}"
    failed = f'sum({rate},status=~"5..|none"}}[$__rate_interval]))'
    counted = f'sum({rate},status=~"2..|5..|none"}}[$__rate_interval]))'
    return [
        plot_series(
            "Rate: predictions by status",
            "Requests to /v1/predict and /v1/logits per second by HTTP status; probes, scrapes and other routes do not"
            " count. 4xx are the clients' mistakes; 5xx and none (no answer) are ours.",
            {"{{status}}": f"sum by (status) ({rate}}}[$__rate_interval])) > 0"},
            Display("reqps", "No request.", THIRD, drawn="areas"),
        ),
        plot_series(
            "Errors: share of failed predictions",
            "Requests that were answered with 5xx, or not at all, among these and the answered ones. LifelongErrorRate"
            " fires above the line.",
            {"failed": f"{failed} / {counted}"},
            Display(
                "percentunit",
                "No request.",
                THIRD,
                maximum=1,
                thresholds=((None, "transparent"), (_ERROR_RATE, "red")),
                links=[link_runbook("LifelongErrorRate")],
            ),
        ),
        plot_series(
            "Duration of predictions",
            "Time from the arrival of a request to /v1/predict or /v1/logits to its answer, failures included: half,"
            " 95 % and 99 % are faster.",
            {
                name: _quantile(share, "lifelong_request_seconds", _PREDICTIONS)
                for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
            },
            Display("s", "No request.", THIRD),
        ),
    ]


def _batches() -> list[Panel]:
    """Where the time goes."""
    return [
        draw_heatmap(
            "Latency of predictions",
            "How many requests to /v1/predict and /v1/logits took how long. Two bands mean two kinds of requests,"
            " such as small and large images; a band that moves up means a queue.",
            {
                "{{le}}": f"sum by (le) (increase(lifelong_request_seconds_bucket{{{_PREDICTIONS}}}[$__rate_interval]))"
            },
            Display("s", "No request."),
            counted="requests",
        ),
        draw_heatmap(
            "Size of micro-batches",
            "How many micro-batches had so many requests. 1: requests come one after the other; full batches: the"
            " service is busy.",
            {"{{le}}": f"sum by (le) (increase(lifelong_batch_size_bucket{{{_HERE}}}[$__rate_interval]))"},
            Display("none", "No request."),
            counted="batches",
        ),
        plot_series(
            "Queue and refused requests",
            "Requests that wait for a micro-batch, and those per second that a limit refused: limits of their token"
            " (429), of the queue, the expected wait or the body (503).",
            {
                "waiting at {{instance}}": f"sum by (instance) (lifelong_queue_length{{{_HERE}}})",
                "refused: {{limit}}": f"{rate_of('lifelong_refused_requests_total', _HERE, by='limit')} > 0",
            },
            Display("short", "No service.", THIRD),
        ),
        plot_series(
            "Decoding, inference and log",
            "95 % are faster: the decoding of an image to the model's input, the run of a graph for a micro-batch, and"
            " the transaction of the prediction log.",
            {
                "decoding": _quantile(0.95, "lifelong_decode_seconds"),
                "inference": _quantile(0.95, "lifelong_inference_seconds"),
                "log": _quantile(0.95, "lifelong_log_commit_seconds"),
            },
            Display("s", "No request.", THIRD),
        ),
        show_table(
            "Execution providers",
            "Workers that run the graph of each model, by the execution provider of ONNX Runtime: CUDA or TensorRT"
            " means a GPU.",
            [
                Column("Model", label="model", width=150),
                Column("Provider", label="provider", width=190),
                Column(
                    "Workers",
                    f"sum by (model, provider) (lifelong_execution_provider{{{_HERE}}}) > 0",
                    width=75,
                ),
            ],
            Display("none", "No worker runs a graph; external models send logits.", THIRD),
            sort="Model",
            descending=False,
        ),
    ]


def _log() -> list[Panel]:
    """Does the database take the predictions, and which processes are sick?"""
    return [
        draw_bars(
            "Fill of the spool",
            "Size of the spool on each machine against its bound, maximum_spool_bytes. When it is full, predictions get"
            " 503 until the database is back; LifelongSpoolFills fires at half.",
            {
                "{{instance}}": f"max by (instance) (lifelong_spool_bytes{{{_HERE}}}"
                f" / lifelong_spool_maximum_bytes{{{_HERE}}})"
            },
            Display(
                "percentunit",
                "No service.",
                QUARTER,
                thresholds=((None, "green"), (0.25, "yellow"), (0.5, "red")),
                maximum=1,
                links=[link_runbook("LifelongSpoolFills")],
            ),
        ),
        plot_series(
            "Into and out of the spools",
            "Predictions that wait on the local disks for the database, and those per second that went there and"
            " came back. All are 0 while the database answers; nothing is lost meanwhile, but the monitor does not"
            " see them.",
            {
                "waiting": f"sum(lifelong_spool_predictions{{{_HERE}}})",
                "spooled a second": rate_of("lifelong_spooled_predictions_total", _HERE),
                "delivered a second": rate_of("lifelong_spool_delivered_predictions_total", _HERE),
            },
            Display("short", "No service.", QUARTER),
        ),
        plot_series(
            "Connections that a limit closed",
            "Per second, by reason: slow or damaged heads, too many connections, clients that do not read their"
            " answers.",
            {"{{reason}}": f"{rate_of('lifelong_closed_connections_total', _HERE, by='reason')} > 0"},
            Display("cps", "No connection was closed by a limit.", QUARTER),
        ),
        show_table(
            "Faults of processes",
            "Services and monitors that are sick, and how; the runbook of the alert says what to do.",
            [
                Column("Instance", label="instance", width=130),
                Column(
                    "Fault",
                    f"max by (instance, fault) (lifelong:process_fault{{{_HERE}}}) > 0",
                    label="fault",
                    words=FAULTS,
                    width=240,
                ),
            ],
            Display("none", "All processes are well.", QUARTER),
        ),
    ]


BOARD = Board(
    "service",
    "Service",
    "The serving processes: requests, errors, latency, batches, decoding, GPU, spool and workers.",
    [*_state(), *_requests(), *_batches(), *_log()],
    variables=[choose_instances()],
    since="now-6h",
)
