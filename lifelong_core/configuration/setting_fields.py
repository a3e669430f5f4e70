"""The fields of the settings: name, default, range and meaning of each."""

import ipaddress
import re
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from lifelong_core.configuration.notification_fields import Network, NotificationSettings, Url
from lifelong_core.configuration.policy_fields import PolicyFields
from lifelong_core.runtime.logs import LogFormat
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.names import Name

EQUAL_FOR_MONITORS: Final = "equal for monitors"
"""Mark of settings that determine the behaviour of a monitor: all monitors of an installation need the same values."""
Positive = Annotated[int, Field(gt=0)]
LabelErrorRate = Annotated[float, Field(ge=0, le=0.5)]

_STRICT = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


if TYPE_CHECKING:

    class PolicySettings(BaseModel, PolicyFields, frozen=True):
        """When a cycle swaps the head; the values of `lifelong_core.deploy.AdaptationPolicy`."""

else:  # pydantic does not read the metadata of a dataclass
    PolicySettings = create_model(
        "PolicySettings",
        __config__=_STRICT,
        __doc__="When a cycle swaps the head; the values of `lifelong_core.deploy.AdaptationPolicy`.",
        __module__=__name__,
        **{
            item.name: (
                item.type,
                Field(default=item.default, description=item.metadata["meaning"], **item.metadata["limits"]),
            )
            for item in fields(PolicyFields)
        },
    )


class TokenLimits(BaseModel):
    """Limits of one token in one worker for predictions, logits and feedback; None: no limit."""

    model_config = _STRICT

    requests_per_second: float | None = Field(
        default=None,
        gt=0,
        description="Requests per second and worker; a burst may hold those of one second.",
    )
    concurrent_requests: Positive | None = Field(
        default=None, description="Requests of the token that one worker handles at once."
    )
    rows_per_minute: Positive | None = Field(
        default=None,
        description="Images and rows of logits per minute and worker; a burst may hold those of one minute.",
    )


class SettingFields(BaseSettings):
    """All settings; the defaults suit one machine."""

    model_config = SettingsConfigDict(
        env_prefix="LIFELONG_", env_nested_delimiter="__", extra="forbid", frozen=True
    )

    # State
    data_directory: Path = Field(
        default=Path("lifelong-data"), description="Folder of the embedded database, artifacts and secrets."
    )
    database_url: str = Field(
        default="",
        description="SQLAlchemy URL; empty: SQLite in data_directory. postgresql+psycopg://... for PostgreSQL. Special"
        " characters are percent-encoded: % as %25, ? as %3F.",
    )
    artifacts_url: str = Field(
        default="",
        description="fsspec URL of the content-addressed artifacts; empty: a folder in data_directory.",
    )
    group_key_file: Path | None = Field(
        default=None,
        description="File with the secret key of the group hash; None: data_directory/group.key.",
    )
    signing_key_file: Path | None = Field(
        default=None,
        description="File with the private key that signs exported knowledge; None: data_directory/signing.key, made by"
        " `lifelong knowledge key`.",
    )

    log_durability: Literal["process", "power"] = Field(
        default="process",
        description="Failures that an answered prediction survives: the death of any process, or a power failure too;"
        " the latter waits for the disk at every commit.",
    )
    log_timeout_seconds: float = Field(
        default=0.5,
        gt=0,
        le=10,
        description="Time that a micro-batch waits for the database before it goes to the spool on the local disk.",
    )
    spool_directory: Path | None = Field(
        default=None,
        description="Folder on a local disk for predictions while the database is unavailable;"
        " None: data_directory/spool.",
    )
    maximum_spool_bytes: Annotated[int, Field(ge=1_000_000)] = Field(
        default=1_000_000_000,
        description="Largest size of the spool; beyond it predictions get 503. 1 GB holds about 5 million.",
    )
    recent_requests_hours: float = Field(
        default=24,
        gt=0,
        le=24 * 365,
        description="Time that request ids and their answers stay in the spool's folder, so that a repeated request is"
        " recognised while the database is unavailable.",
    )
    maximum_recent_requests_bytes: Annotated[int, Field(ge=1_000_000)] = Field(
        default=200_000_000,
        description="Largest size of that file; beyond it the oldest go. 200 MB hold about a million requests.",
    )
    retention_days: Annotated[Positive | None, EQUAL_FOR_MONITORS] = Field(
        default=None,
        description="Days until predictions with their labels and request ids, and ended jobs, are deleted; None: they"
        " are kept.",
    )
    environment_retention_days: Annotated[dict[Name, Positive], EQUAL_FOR_MONITORS] = Field(
        default_factory=dict[str, int],
        description="Retention days of single environments.",
    )

    log_format: LogFormat | None = Field(
        default=None,
        description="Format of the log on standard error: json or console; None: console on a terminal, else json.",
    )

    tracing_url: Url | None = Field(
        default=None,
        description="OTLP collector (HTTP, protobuf) of OpenTelemetry traces, such as http://127.0.0.1:4318/v1/traces;"
        " None: no traces. Needs the extra telemetry.",
    )
    tracing_share: float = Field(
        default=1, ge=0, le=1, description="Share of traces that are sent, of those that no caller has begun."
    )

    # Service
    host: str = Field(default="127.0.0.1", description="Address that the service and the exporter listen on.")
    port: int = Field(default=3000, ge=1, le=65535, description="Port of the service.")
    root_path: str = Field(
        default="",
        description="Path below which a reverse proxy serves this service, such as /lifelong. Empty: no path.",
    )
    workers: Positive | None = Field(
        default=None,
        description="Serving processes; each holds the models in memory. None: two to eight, on a GPU two to four,"
        " by the cores that the process may use and by intra_op_threads. With only one its death is an outage of 10 s.",
    )
    open_access: bool = Field(
        default=False,
        description="True: predict, logits and feedback need no token (behind a gateway that checks access).",
    )
    open_metrics: bool = Field(
        default=True,
        description="False: /metrics of the service and of the monitor need a token with the scope metrics.",
    )
    console_idle_seconds: float = Field(
        default=3600,
        ge=60,
        le=86_400 * 30,
        description="A session of the console ends after this time without a request.",
    )
    console_session_seconds: float = Field(
        default=43_200,
        ge=60,
        le=86_400 * 30,
        description="A session of the console ends after this time even if it is used; 12 hours.",
    )
    failed_logins_per_minute: Positive = Field(
        default=10,
        description="Failed logins to the console per address and worker, then 429; ten times as many for all addresses"
        " together.",
    )
    registry_poll_seconds: float = Field(
        default=0.2,
        gt=0,
        le=1,
        description="Interval at which a worker asks for new heads and models; a swap takes effect within it.",
    )
    maximum_batch_size: Positive = Field(
        default=64,
        description="Largest number of samples in one micro-batch; 8 rows of logits count as one sample.",
    )
    queue_capacity: Positive = Field(
        default=512,
        description="Requests that may wait in one worker; beyond it the answer is 503 with Retry-After.",
    )
    maximum_wait_seconds: float = Field(
        default=1,
        gt=0,
        le=60,
        description="A prediction whose wait in a worker would exceed this, by the measured rate, gets 503 with"
        " Retry-After at once. One token may use half of this time.",
    )
    maximum_batch_seconds: float = Field(
        default=0.25,
        gt=0,
        le=10,
        description="Longest expected duration of a micro-batch, by the measured rate; it bounds the time that a"
        " request waits for the batch before it.",
    )
    maximum_held_body_bytes: Positive = Field(
        default=200_000_000,
        description="Bytes of prediction and feedback bodies that one worker holds at once; beyond it the answer is"
        " 503. One token may use half of them.",
    )
    shadow_queue_capacity: Positive = Field(
        default=256,
        description="Answered images that may wait in one worker for the decision of a shadow; more are left out and"
        " counted.",
    )
    maximum_shadow_queue_bytes: Positive = Field(
        default=100_000_000, description="Memory in bytes of these images; more are left out and counted."
    )
    token_limits: TokenLimits = Field(
        default_factory=TokenLimits,
        description="Limits of every token in one worker; beyond them the answer is 429.",
    )
    named_token_limits: dict[str, TokenLimits] = Field(
        default_factory=dict[str, TokenLimits],
        description="Limits of single tokens, by name; each lists only the values that differ from"
        ' `token_limits`: [named_token_limits."gateway"] in the file, or as JSON.',
    )
    maximum_body_bytes: Positive = Field(default=20_000_000, description="Larger request bodies get 413.")
    maximum_json_bytes: Positive = Field(
        default=4_000_000,
        description="Larger JSON bodies and forms get 413; arrays as npy or npz may be larger.",
    )
    maximum_labelled_bytes: Positive = Field(
        default=32_000_000,
        description="Larger calibration and validation sets get 413, and npz files whose arrays take more memory,"
        " 8 bytes for each number.",
    )
    maximum_upload_bytes: Positive = Field(
        default=1_000_000_000,
        description="Larger archives of images to fingerprint get 413. For more images, see image_roots.",
    )
    maximum_model_bytes: Positive = Field(default=1_000_000_000, description="Larger ONNX uploads get 413.")
    maximum_bundle_bytes: Positive = Field(
        default=64_000_000,
        description="Larger bundles of knowledge get 413, on import and on export; 64 MB hold 1,000 fingerprints.",
    )
    maximum_graph_memory_bytes: Annotated[int, Field(ge=100_000_000)] = Field(
        default=2_000_000_000,
        description="Memory that loading and running a new ONNX graph may take, in addition to four times its size; and"
        " memory that all graphs of a worker together may take for a batch on the CPU, in addition to their weights.",
    )
    maximum_worker_memory_bytes: Annotated[int, Field(ge=1_000_000_000)] | None = Field(
        default=None,
        description="Memory that one worker may allocate; what needs more fails. None: four fifths of the memory of the"
        " machine, or of what its container may use, divided by the workers, at least 2 GB. Without effect where graphs"
        " run on a GPU.",
    )
    maximum_graph_hangs: Positive = Field(
        default=3,
        description="Hangs of one model within a day, each of which costs a worker of this machine, after which it is"
        " not served.",
    )
    permitted_operators: tuple[str, ...] = Field(
        default=(),
        description="ONNX operators that are refused by default and that new graphs may contain, such as Loop.",
    )
    request_timeout_seconds: float = Field(
        default=8,
        ge=1,
        le=60,
        description="A request without an answer after this time gets 503 with Retry-After; with a token, the time in"
        " which its body arrives does not count, see minimum_body_bytes_per_second. A worker with a batch that goes on"
        " for 2 s longer is replaced.",
    )
    minimum_body_bytes_per_second: Positive = Field(
        default=16_000,
        description="Lowest rate of a request body with a token; it may be late by request_timeout_seconds.",
    )
    login_timeout_seconds: float = Field(
        default=3,
        gt=0,
        le=60,
        description="A connection on which the form of a login to the console has not arrived after this time is"
        " closed with 408.",
    )
    header_timeout_seconds: float = Field(
        default=10,
        gt=0,
        le=300,
        description="A connection whose request head is incomplete after this time is closed with 408.",
    )
    keep_alive_seconds: float = Field(
        default=5,
        gt=0,
        le=600,
        description="An idle connection is closed after this time; a reverse proxy that reuses connections must close"
        " them earlier.",
    )
    maximum_connections: Positive = Field(
        default=1000,
        description="Open connections of one worker; beyond it one that waits for its client is closed: of the"
        " address or token with the most of them, the one that has waited longest. Requests on more than 98 % of all"
        " connections get 503, except probes.",
    )
    maximum_connections_per_address: Positive = Field(
        default=500,
        description="The same limit for one client address, except trusted_proxies.",
    )
    trusted_proxies: tuple[Network, ...] = Field(
        default=(),
        description="Addresses or networks of reverse proxies, such as 10.0.0.7 or 10.0.0.0/24: no limit per address,"
        " and their X-Forwarded-For names the clients.",
    )
    maximum_image_pixels: Positive = Field(
        default=16_777_216, description="Images that would decode to more get 413; 4096 x 4096."
    )
    maximum_logits_rows: Positive = Field(
        default=10_000, description="Largest number of rows in one call of /v1/logits."
    )
    environment_creation: Literal["open", "listed"] = Field(
        default="open",
        description="open: the first prediction of a new name adds an environment; listed: only"
        " `lifelong environments add` does.",
    )
    maximum_environments: Positive = Field(
        default=100, description="Predictions add environments only up to this number."
    )
    maximum_new_environments_per_hour: Positive = Field(
        default=10,
        description="Environments that the predictions of one token may add within an hour; then 429.",
    )
    intra_op_threads: int | None = Field(
        default=None,
        ge=0,
        description="ONNX Runtime threads of each worker. None: the cores divided by the workers; 1 on a GPU.",
    )
    execution_providers: tuple[str, ...] = Field(
        default=(),
        description="ONNX Runtime execution providers in order of preference; one that cannot be used is an error."
        " Empty: CUDA where it can be started, else the CPU with a warning if CUDA is installed.",
    )
    gpu_device: int = Field(
        default=0, ge=0, le=255, description="Number of the GPU, as CUDA counts the visible ones."
    )
    gpu_memory_bytes: Annotated[int, Field(ge=1_000_000_000)] | None = Field(
        default=None,
        description="GPU memory for the graphs of all workers of this machine, and for one check of a new graph; every"
        " graph gets an equal share. CUDA itself takes about half a gigabyte for each process beside it. None: no"
        " limit.",
    )
    gpu_graphs_per_worker: Positive = Field(
        default=3,
        description="Graphs that one worker may hold at once within gpu_memory_bytes: a promoted one, a candidate, and"
        " the next version while it is loaded.",
    )
    gpu_tf32: bool = Field(
        default=False,
        description="True: a GPU may round the factors of float32 products to 10 bits (TF32), which is faster and"
        " changes logits. Calibrate with the value that serves.",
    )

    # Monitor
    monitor_port: int = Field(
        default=9465, ge=1, le=65535, description="Port of the monitor's Prometheus exporter."
    )
    cycle_interval_seconds: Annotated[float, EQUAL_FOR_MONITORS] = Field(
        default=3600,
        gt=0,
        description="Time between two regular cycles of one population (a model in an environment), at UTC multiples"
        " of it.",
    )
    cycle_new_samples: Annotated[int | None, EQUAL_FOR_MONITORS] = Field(
        default=None,
        ge=0,
        description="Number of new predictions that starts an early cycle of a population; None: half of its policy's"
        " minimum_samples; 0: no early cycles.",
    )
    cycle_spacing_seconds: Annotated[float, EQUAL_FOR_MONITORS] = Field(
        default=60,
        ge=0,
        description="Shortest time between an early cycle of one population and the cycle before it.",
    )
    news_poll_seconds: float = Field(
        default=2,
        gt=0,
        le=60,
        description="Interval at which a monitor counts new predictions, with one query for all populations.",
    )
    window_samples: Annotated[Positive, EQUAL_FOR_MONITORS] = Field(
        default=5000, description="Largest number of predictions in a window, the newest ones."
    )
    window_seconds: Annotated[float, EQUAL_FOR_MONITORS] = Field(
        default=7 * 86400.0,
        gt=0,
        description="Largest age of a prediction in a window when the cycle is due.",
    )
    quantifier: Annotated[str, EQUAL_FOR_MONITORS] = Field(
        default="auto",
        description="Method that estimates the prevalence: CC, PCC, ACC, PACC, BBSE, EMQ, MLLS, HDy, KDEyML, KDEyHD,"
        " KDEyCS, auto (case matters).",
    )
    validation_samples: Annotated[Positive, EQUAL_FOR_MONITORS] = Field(
        default=5000,
        description="Number of newest labelled predictions for the realised accuracy, cost and recommended metrics.",
    )
    label_error_rate: Annotated[LabelErrorRate, EQUAL_FOR_MONITORS] = Field(
        default=0,
        description="Assumed largest share of the labels of each class that are wrong; it widens the intervals of the"
        " realised performance and, for calibration labels, of the estimated prevalence. 0: every label is right.",
    )
    task_label_error_rates: Annotated[dict[Name, dict[str, LabelErrorRate]], EQUAL_FOR_MONITORS] = Field(
        default_factory=dict[str, dict[str, float]],
        description="The same for single classes of single tasks, by class name: [task_label_error_rates.lesions] with"
        " melanoma = 0.05 in the file, or as JSON; other classes have `label_error_rate`.",
    )
    estimate_single_classes: Annotated[bool, EQUAL_FOR_MONITORS] = Field(
        default=False,
        description="Estimate recommended metrics without labels also for single classes; false: only for those with an"
        " acceptance threshold.",
    )
    evidence_samples: Annotated[Positive, EQUAL_FOR_MONITORS] = Field(
        default=100_000,
        description="Largest number of new predictions that a cycle feeds to the sequential test; of more, the newest.",
    )
    retraining_proposal_cycles: Annotated[int, EQUAL_FOR_MONITORS] = Field(
        default=3,
        ge=0,
        description="Number of successive cycles with data of their own after which a monitor proposes a retraining:"
        " estimated or realised performance below acceptance, or refusals because more than the prevalence has"
        " changed; 0: never.",
    )
    lease_seconds: float = Field(
        default=30,
        ge=1,
        le=3600,
        description="Time without a renewal after which another monitor takes over a cycle or a job.",
    )
    job_poll_seconds: float = Field(
        default=1,
        gt=0,
        le=60,
        description="Interval at which a monitor looks for jobs, such as the validation of a model.",
    )
    job_time_limit_seconds: float = Field(
        default=3600, ge=1, description="A job that takes longer is stopped and fails."
    )
    job_runner: Literal["local", "ray"] = Field(
        default="local",
        description="Where a monitor runs jobs: local: as a subprocess; ray: as a task of a Ray cluster, whose nodes"
        " need this version of lifelong and reach the database and the artifacts.",
    )
    ray_address: str = Field(
        default="auto",
        description="Address of the Ray cluster, host:port; the monitor runs on one of its nodes. auto: the cluster of"
        " this machine.",
    )
    training_devices: tuple[Annotated[str, Field(pattern=r"^(auto|cpu|cuda(:\d+)?)$")], ...] = Field(
        default=("auto",),
        max_length=64,
        description="Devices on which this monitor trains models, one training at a time for each entry, beside its"
        " other jobs: auto (a GPU if there is one), cpu, cuda:0, ...; empty: none.",
    )
    training_time_limit_seconds: float = Field(
        default=86_400, ge=1, description="A training that takes longer is stopped and fails."
    )
    training_weights: Path | None = Field(
        default=None,
        description="Folder with pretrained weights, {architecture}.safetensors or .pth, on every machine that trains;"
        " None, or an architecture without a file: timm's own, from the hub or its cache.",
    )
    job_memory_bytes: int | None = Field(
        default=None,
        ge=2**28,
        description="A job whose processes together use more memory is stopped and fails; None: half of the memory of"
        " the machine, or of what its container may use.",
    )
    job_disk_bytes: int = Field(
        default=2**30,
        ge=0,
        description="Free space that must be left on the disk of the data directory; with less, a training does not"
        " start, or is stopped.",
    )
    report_images: int = Field(
        default=0,
        ge=0,
        le=50,
        description="Images that a promotion report shows with the places that both models look at, those that agree"
        " least; they are kept with the report. 0: no image is kept.",
    )
    ray_cpus: float = Field(default=1, ge=0, description="CPU cores that Ray reserves for a job.")
    ray_gpus: float = Field(default=0, ge=0, description="GPUs that Ray reserves for a job.")
    image_roots: tuple[Path, ...] = Field(
        default=(),
        description="Folders whose images may be fingerprinted or trained on by their path, in the service and on the"
        " machines that run jobs; empty: uploads only.",
    )
    fingerprint_extractor: Path | None = Field(
        default=None,
        description="File of the extractor reference of fingerprint jobs, on every machine that runs jobs; see"
        " `lifelong fingerprint extractor make`.",
    )
    fingerprint_weights: Path | None = Field(
        default=None,
        description="File of the weights that this reference names; None: timm's own, from the hub or its cache.",
    )
    policy: PolicySettings = Field(default_factory=PolicySettings, description="Conditions of a swap.")
    environment_policies: dict[Name, PolicySettings] = Field(
        default_factory=dict[str, PolicySettings],
        description="Policies of single environments; each lists only the values that differ from `policy`:"
        ' [environment_policies."hospital-a"] in the file, or as JSON.',
    )

    notifications: NotificationSettings = Field(
        default_factory=NotificationSettings, description="Messages to people; see docs/notifications.md."
    )

    @field_validator("host")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        address = "127.0.0.1" if value == "localhost" else value
        try:
            ipaddress.ip_address(address)
        except ValueError as error:
            raise ValueError("expected an IP address, such as 127.0.0.1 or 0.0.0.0") from error
        return address

    @field_validator("root_path")
    @classmethod
    def _is_a_path(cls, value: str) -> str:
        path = value.rstrip("/")
        if not re.fullmatch(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*", path):
            raise ValueError("expected a path of letters, digits and . _ ~ -, such as /lifelong")
        if path.split("/")[1:2] in (["console"], ["v1"], ["metrics"]):
            raise ValueError("expected another path than those of the service itself, such as /lifelong")
        return path

    @field_validator("intra_op_threads")
    @classmethod
    def _is_a_number_of_threads(cls, value: int | None) -> int | None:
        if value == 0:  # which ONNX Runtime reads as one thread per core
            raise InvalidInputError(
                "expected at least 1 thread, got 0: every worker would take all cores.",
                field="intra_op_threads",
                hint="Leave the setting out: the workers then share the cores.",
            )
        return value
