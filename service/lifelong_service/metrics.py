"""Prometheus metrics of the service, summed over all workers. No label has values that clients can choose freely."""

import os
from collections.abc import Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess

from lifelong_service.process.metric_files import check_folder, forget_dead_workers

REGISTRY = CollectorRegistry()
"""Holds the metrics of a single process, as in tests; workers share files instead."""
_SHORT_SECONDS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5)
"""Buckets of the stages of a micro-batch."""

CLIENT_CLOSED_REQUEST = 499
"""Status of a request whose client closed the connection before it was read, or while it waited in a long queue."""
NO_ANSWER = "none"
"""Status of a request that ended without an answer, e.g. because its worker was stopped."""
EXPECTED_STATUSES = (
    200,
    400,
    401,
    403,
    404,
    409,
    413,
    415,
    422,
    429,
    CLIENT_CLOSED_REQUEST,
    500,
    503,
    NO_ANSWER,
)
"""Statuses of predictions and labels."""

REQUESTS = Counter(
    "lifelong_requests_total",
    "Requests by route and HTTP status, probes and scrapes included. 499: the client closed the connection before its"
    " request was read, or while it waited in a long queue. none: the request ended without an answer.",
    ["route", "status"],
    registry=REGISTRY,
)
REQUEST_SECONDS = Histogram(
    "lifelong_request_seconds",
    "Time from the first byte of a request to the last of its answer, by route, probes and scrapes included.",
    ["route"],
    buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10),
    registry=REGISTRY,
)
PREDICTIONS = Counter(
    "lifelong_predictions_total",
    "Predictions logged, by decision and role of the model: promoted, canary, shadow (not answered), or other (named by"
    " the request).",
    ["model", "environment", "label", "role"],
    registry=REGISTRY,
)
CANDIDATE_FAILURES = Counter(
    "lifelong_candidate_failures_total",
    "Images on which the candidate of a trial failed, by its role (canary, shadow); the promoted model answered.",
    ["model", "role"],
    registry=REGISTRY,
)
DROPPED_SHADOWS = Counter(
    "lifelong_dropped_shadows_total",
    "Images that were answered, but not shown to the shadow. full: its queue was full. outage: the database was away."
    " failed: the image could not be decoded again, or its prediction not logged.",
    ["reason"],
    registry=REGISTRY,
)
for _reason in ("full", "outage", "failed"):
    DROPPED_SHADOWS.labels(_reason)
BATCH_SIZE = Histogram(
    "lifelong_batch_size",
    "Requests in one micro-batch.",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128),
    registry=REGISTRY,
)
QUEUE_LENGTH = Gauge(
    "lifelong_queue_length",
    "Requests that wait for a micro-batch.",
    multiprocess_mode="livesum",
    registry=REGISTRY,
)
REFUSED_REQUESTS = Counter(
    "lifelong_refused_requests_total",
    "Requests that were refused because of a limit: concurrent_requests, requests_per_second and rows_per_minute of"
    " their token (429), failed_logins to the console (429), expected wait, queue and body_bytes of the worker (503)."
    " By the name of the token.",
    ["limit", "token"],
    registry=REGISTRY,
)
DECODE_SECONDS = Histogram(
    "lifelong_decode_seconds",
    "Time from the bytes of an image to the input of the model; of a large image, with the wait for others.",
    buckets=_SHORT_SECONDS,
    registry=REGISTRY,
)
INFERENCE_SECONDS = Histogram(
    "lifelong_inference_seconds",
    "Time to run the graph of a model for the images of a micro-batch.",
    buckets=_SHORT_SECONDS,
    registry=REGISTRY,
)
WORKERS = Gauge(
    "lifelong_workers", "Workers that have started.", multiprocess_mode="livesum", registry=REGISTRY
)
LOG_COMMIT_SECONDS = Histogram(
    "lifelong_log_commit_seconds",
    "Time to write one micro-batch to the prediction log.",
    buckets=_SHORT_SECONDS,
    registry=REGISTRY,
)
LOG_DEGRADED = Gauge(
    "lifelong_log_degraded",
    "1 while predictions go to the spool instead of the database.",
    multiprocess_mode="livemax",
    registry=REGISTRY,
)
# All workers of a machine share one spool: the latest value is right.
SPOOL_BYTES = Gauge(
    "lifelong_spool_bytes", "Size of the spool.", multiprocess_mode="mostrecent", registry=REGISTRY
)
SPOOL_MAXIMUM_BYTES = Gauge(
    "lifelong_spool_maximum_bytes",
    "Size of the spool from which on predictions get 503.",
    multiprocess_mode="mostrecent",
    registry=REGISTRY,
)
SPOOL_PREDICTIONS = Gauge(
    "lifelong_spool_predictions",
    "Predictions that wait in the spool.",
    multiprocess_mode="mostrecent",
    registry=REGISTRY,
)
SPOOL_DAMAGED_RECORDS = Gauge(
    "lifelong_spool_damaged_records",
    "Records of the spool that could not be read.",
    multiprocess_mode="mostrecent",
    registry=REGISTRY,
)
SPOOL_REFUSED_RECORDS = Gauge(
    "lifelong_spool_refused_records",
    "Records of the spool that the database refuses for good.",
    multiprocess_mode="mostrecent",
    registry=REGISTRY,
)
SPOOLED_PREDICTIONS = Counter(
    "lifelong_spooled_predictions_total", "Predictions appended to the spool.", registry=REGISTRY
)
DELIVERED_PREDICTIONS = Counter(
    "lifelong_spool_delivered_predictions_total",
    "Predictions brought from the spool to the database.",
    registry=REGISTRY,
)
REPEATED_PREDICTIONS = Counter(
    "lifelong_spool_repeated_predictions_total",
    "Predictions of the spool that are not logged, because another machine had answered the same request before.",
    registry=REGISTRY,
)
HEAD_SWAPS_SEEN = Counter(
    "lifelong_head_swaps_seen_total",
    "Changes of the head that answers a place (a model's default, an environment) that a worker has taken over.",
    registry=REGISTRY,
)

DAMAGED_HEADS = Gauge(
    "lifelong_damaged_heads",
    "Places whose active head cannot be served because it is damaged or does not fit.",
    multiprocess_mode="livemax",
    registry=REGISTRY,
)
CLOSED_CONNECTIONS = Counter(
    "lifelong_closed_connections_total",
    "Connections that a limit closed. header_timeout: the head of a request did not arrive in time. large_head: head,"
    " chunk framing or trailers of a request are too large. malformed: bytes are no request of HTTP/1, or too many"
    " requests wait for an earlier answer. login: the form of a login is slow or too large. evicted: too many"
    " connections, and this one waited for its client. refused: too many, and all others waited for an answer."
    " unread: its client hardly read an answer.",
    ["reason"],
    registry=REGISTRY,
)
for _reason in ("header_timeout", "large_head", "malformed", "login", "evicted", "refused", "unread"):
    CLOSED_CONNECTIONS.labels(_reason)
MODELS_WITHOUT_HEAD = Gauge(
    "lifelong_models_without_head",
    "Promoted models without a default head that can be served.",
    multiprocess_mode="livemax",
    registry=REGISTRY,
)
FAILED_MODELS = Gauge(
    "lifelong_failed_models",
    "Models with a head whose graph a worker could not load.",
    multiprocess_mode="livemax",
    registry=REGISTRY,
)
OTHER_PREPROCESSING = Gauge(
    "lifelong_models_with_other_preprocessing",
    "Models whose active calibration set was made with another preprocessing or image decoder than a worker's.",
    multiprocess_mode="livemax",
    registry=REGISTRY,
)
EXECUTION_PROVIDER = Gauge(
    "lifelong_execution_provider",
    "Workers that run the graph of a model with this ONNX Runtime execution provider.",
    ["model", "provider"],
    multiprocess_mode="livesum",
    registry=REGISTRY,
)
UNUSED_GPU = Gauge(
    "lifelong_unused_gpu",
    "Workers that run graphs on the CPU because CUDA, which is installed, cannot be started.",
    multiprocess_mode="livesum",
    registry=REGISTRY,
)


def create_request_series(routes: Iterable[str]) -> None:
    """Create the series of these routes with the value 0.

    A counter that appears with its first event hides that event from `increase()`: alerts would miss the first failure.
    """
    for route in routes:
        REQUEST_SECONDS.labels(route)
        for status in EXPECTED_STATUSES:
            REQUESTS.labels(route, status)


def exposition() -> bytes:
    """Return the metrics of all workers in Prometheus' text format.

    Raises:
        UnavailableError: the folder of the metrics was removed.
    """
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    if not folder:
        return generate_latest(REGISTRY)
    check_folder(Path(folder))
    forget_dead_workers(Path(folder))
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # pyright: ignore[reportArgumentType] - the folder is in the environment
    return generate_latest(registry)
