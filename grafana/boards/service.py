"""The dashboard of the serving processes: requests, latency, batches, decoding, GPU, spool, workers."""

from grafana.dashboard import Board
from grafana.grids import Column, draw_bars, draw_heatmap, show_table
from grafana.links import link_runbook
from grafana.panels import HALF, QUARTER, THIRD, Panel, plot_series, show_numbers
from grafana.queries import Query
from grafana.variables import choose_instances
from grafana.words import FAULTS

_HERE = 'instance=~"$instance"'
_PREDICTIONS = f'{_HERE},route=~"/v1/(predict|logits)"'
"""Label matchers of requests for predictions; others would hide their failures and latency."""
_ERROR_RATE = 0.05
"""LifelongErrorRate fires above it."""


def _quantiles(histogram: str, matchers: str, *names: str) -> list[Query]:
    return [
        Query(
            f"histogram_quantile(0.{name[1:]}, sum by (le) (rate({histogram}_bucket{{{matchers}}}[$__rate_interval])))",
            name,
        )
        for name in names
    ]


def _state() -> list[Panel]:
    def of_a_day(status: str) -> str:
        return f'sum(increase(lifelong_requests_total{{{_PREDICTIONS},status=~"{status}"}}[1d]))'

    return [
        show_numbers(
            "Predictions within a day",
            "Requests to /v1/predict and /v1/logits within 24 hours. failed: answered with 5xx, or not at all."
            " rejected: the client's mistake (4xx). Probes, scrapes and other routes do not count.",
            [
                Query(of_a_day("2.."), "answered"),
                Query(of_a_day("4.."), "rejected"),
                Query(of_a_day("5..|none"), "failed"),
            ],
            unit="short",
            empty="no request yet",
            text="value_and_name",
            width=HALF,
        ),
        show_numbers(
            "Workers",
            "Serving processes that live, of all chosen instances.",
            [Query(f"sum(lifelong_workers{{{_HERE}}})", "workers")],
            unit="short",
            empty="no service",
            thresholds=((None, "red"), (1, "green")),
        ),
        show_numbers(
            "Processes down",
            "Services and monitors that Prometheus does not reach.",
            [Query(f'count(up{{job=~"lifelong-.*",{_HERE}}} == 0) or vector(0)', "down")],
            unit="short",
            empty="unknown",
            thresholds=((None, "green"), (1, "red")),
            links=[link_runbook("LifelongServiceDown")],
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
            [Query(f"sum by (status) ({rate}}}[$__rate_interval])) > 0", "{{status}}")],
            unit="reqps",
            empty="No request.",
            width=THIRD,
            minimum=0,
            drawn="areas",
        ),
        plot_series(
            "Errors: share of failed predictions",
            "Requests that were answered with 5xx, or not at all, among these and the answered ones. LifelongErrorRate"
            " fires above the line.",
            [Query(f"{failed} / {counted}", "failed")],
            unit="percentunit",
            empty="No request.",
            width=THIRD,
            minimum=0,
            maximum=1,
            thresholds=((None, "transparent"), (_ERROR_RATE, "red")),
            links=[link_runbook("LifelongErrorRate")],
        ),
        plot_series(
            "Duration of predictions",
            "Time from the arrival of a request to /v1/predict or /v1/logits to its answer, failures included: half,"
            " 95 % and 99 % are faster.",
            _quantiles("lifelong_request_seconds", _PREDICTIONS, "p50", "p95", "p99"),
            unit="s",
            empty="No request.",
            width=THIRD,
            minimum=0,
        ),
    ]


def _batches() -> list[Panel]:
    """Where the time goes."""
    return [
        draw_heatmap(
            "Latency of predictions",
            "How many requests to /v1/predict and /v1/logits took how long. Two bands mean two kinds of requests,"
            " such as small and large images; a band that moves up means a queue.",
            Query(
                f"sum by (le) (increase(lifelong_request_seconds_bucket{{{_PREDICTIONS}}}[$__rate_interval]))",
                "{{le}}",
            ),
            unit="s",
            counted="requests",
            empty="No request.",
        ),
        draw_heatmap(
            "Size of micro-batches",
            "How many micro-batches had so many requests. 1: requests come one after the other; full batches: the"
            " service is busy.",
            Query(
                f"sum by (le) (increase(lifelong_batch_size_bucket{{{_HERE}}}[$__rate_interval]))", "{{le}}"
            ),
            unit="none",
            counted="batches",
            empty="No request.",
        ),
        plot_series(
            "Queue and refused requests",
            "Requests that wait for a micro-batch, and those per second that a limit refused: limits of their token"
            " (429), of the queue, the expected wait or the body (503).",
            [
                Query(f"sum by (instance) (lifelong_queue_length{{{_HERE}}})", "waiting at {{instance}}"),
                Query(
                    f"sum by (limit) (rate(lifelong_refused_requests_total{{{_HERE}}}[$__rate_interval])) > 0",
                    "refused: {{limit}}",
                ),
            ],
            unit="short",
            empty="No service.",
            width=THIRD,
            minimum=0,
        ),
        plot_series(
            "Decoding, inference and log",
            "95 % are faster: the decoding of an image to the model's input, the run of a graph for a micro-batch, and"
            " the transaction of the prediction log.",
            [
                Query(
                    f"histogram_quantile(0.95, sum by (le) (rate({name}_bucket{{{_HERE}}}[$__rate_interval])))",
                    legend,
                )
                for name, legend in (
                    ("lifelong_decode_seconds", "decoding"),
                    ("lifelong_inference_seconds", "inference"),
                    ("lifelong_log_commit_seconds", "log"),
                )
            ],
            unit="s",
            empty="No request.",
            width=THIRD,
            minimum=0,
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
            empty="No worker runs a graph; external models send logits.",
            sort="Model",
            descending=False,
            width=THIRD,
        ),
    ]


def _log() -> list[Panel]:
    """Does the database take the predictions, and which processes are sick?"""
    return [
        draw_bars(
            "Fill of the spool",
            "Size of the spool on each machine against its bound, maximum_spool_bytes. When it is full, predictions get"
            " 503 until the database is back; LifelongSpoolFills fires at half.",
            [
                Query(
                    f"max by (instance) (lifelong_spool_bytes{{{_HERE}}} / lifelong_spool_maximum_bytes{{{_HERE}}})",
                    "{{instance}}",
                )
            ],
            unit="percentunit",
            empty="No service.",
            thresholds=((None, "green"), (0.25, "yellow"), (0.5, "red")),
            maximum=1,
            width=QUARTER,
            links=[link_runbook("LifelongSpoolFills")],
        ),
        plot_series(
            "Into and out of the spools",
            "Predictions that wait on the local disks for the database, and those per second that went there and"
            " came back. All are 0 while the database answers; nothing is lost meanwhile, but the monitor does not"
            " see them.",
            [
                Query(f"sum(lifelong_spool_predictions{{{_HERE}}})", "waiting"),
                Query(
                    f"sum(rate(lifelong_spooled_predictions_total{{{_HERE}}}[$__rate_interval]))",
                    "spooled a second",
                ),
                Query(
                    f"sum(rate(lifelong_spool_delivered_predictions_total{{{_HERE}}}[$__rate_interval]))",
                    "delivered a second",
                ),
            ],
            unit="short",
            empty="No service.",
            width=QUARTER,
            minimum=0,
        ),
        plot_series(
            "Connections that a limit closed",
            "Per second, by reason: slow or damaged heads, too many connections, clients that do not read their"
            " answers.",
            [
                Query(
                    f"sum by (reason) (rate(lifelong_closed_connections_total{{{_HERE}}}[$__rate_interval])) > 0",
                    "{{reason}}",
                )
            ],
            unit="cps",
            empty="No connection was closed by a limit.",
            width=QUARTER,
            minimum=0,
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
            empty="All processes are well.",
            width=QUARTER,
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
