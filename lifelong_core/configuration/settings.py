"""The typed settings class, the only documentation of the settings.

Sources, strongest first: environment variables `LIFELONG_*` (nested: `LIFELONG_POLICY__MINIMUM_SAMPLES`),
the file `lifelong.toml` in the working directory (or the file that `LIFELONG_CONFIG` names), the defaults.
"""

import ipaddress
import math
import os
import re
import tomllib
import urllib.parse
from collections.abc import Collection, Sequence
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    field_validator,
)
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from lifelong_core.configuration.policy_fields import PolicyFields
from lifelong_core.runtime.addresses import host_and_port, reachable_address
from lifelong_core.runtime.logs import LogFormat
from lifelong_core.runtime.memory import usable_memory
from lifelong_core.runtime.redaction import redact
from lifelong_core.values.class_labels import composed
from lifelong_core.values.errors import ConfigurationError, InvalidInputError
from lifelong_core.values.names import Name
from lifelong_core.values.validation_errors import as_input_error, suggest


def _check_network(value: str) -> str:
    try:
        return str(ipaddress.ip_network(value, strict=False))
    except ValueError as error:
        raise ValueError("expected an IP address or a network, such as 10.0.0.0/24") from error


Group = TypeVar("Group", bound=BaseModel)
EQUAL_FOR_MONITORS: Final = "equal for monitors"
"""Mark of settings that determine the behaviour of a monitor: all monitors of an installation need the same values."""
Positive = Annotated[int, Field(gt=0)]
LabelErrorRate = Annotated[float, Field(ge=0, le=0.5)]
Network = Annotated[str, AfterValidator(_check_network)]

OTHER_VARIABLES = frozenset(
    {"LIFELONG_CONFIG", "LIFELONG_TOKEN", "LIFELONG_URL", "LIFELONG_SHARED_DATA", "LIFELONG_JOB_DEVICE"}
)
"""Variables with our prefix that are not settings: the file, the service and the token of a client, the data of the
tests, and what a runner tells the process of a job."""

RENAMED_SETTINGS = {
    "log_patience_seconds": "log_timeout_seconds",
    "policy__looks_between_false_alarms": "policy__average_run_length",
}
"""New names of renamed settings; old names are refused with a message that states the new one."""

_STRICT = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

_MODES = {
    "auto": "cycles swap heads",
    "propose": "cycles propose heads, a person approves them",
    "shadow": "cycles only report",
}


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


class Settings(BaseSettings):
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

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then environment variables, then the TOML file."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, toml_file=settings_file())

    @classmethod
    def load(cls) -> Self:
        """The settings of this process.

        Raises:
            ConfigurationError: a setting is unknown (a misspelt name must not be ignored) or has an illegal value.
        """
        _refuse_unknown_variables(cls)
        named = os.environ.get("LIFELONG_CONFIG")
        if named and not Path(named).is_file():
            raise ConfigurationError(f"the file {named} does not exist.", field="LIFELONG_CONFIG")
        try:
            return cls()
        except tomllib.TOMLDecodeError as error:
            raise ConfigurationError(
                f"the file is not valid TOML: {error}.", field=named or "lifelong.toml"
            ) from error
        except SettingsError as error:
            named = re.search(r'field "(\w+)"', str(error))
            raise ConfigurationError(
                "this is not JSON.",
                field=f"LIFELONG_{named[1].upper()}" if named else None,
                hint="Lists and tables are given as JSON in an environment variable.",
            ) from error
        except ValidationError as error:
            wrong = as_input_error(error, cls)
            message, hint = redact(wrong.message), wrong.hint
            if (new := RENAMED_SETTINGS.get((wrong.field or "").replace(".", "__"))) is not None:
                message, hint = "this setting has a new name.", f"Call it {new.replace('__', '.')}."
            raise ConfigurationError(message, field=_source_of(wrong.field), hint=hint) from error

    def listening_url(self, port: int) -> str:
        """The URL of the address that the service (`port`) or the exporter (`monitor_port`) listens on."""
        return f"http://{host_and_port(self.host, port)}"

    @property
    def service_url(self) -> str:
        """Where this machine reaches the service."""
        return f"http://{host_and_port(reachable_address(self.host), self.port)}"

    @property
    def resolved_database_url(self) -> str:
        """The database URL with the embedded default filled in."""
        file = urllib.parse.quote(str(self.data_directory.resolve() / "lifelong.db"))
        return self.database_url or f"sqlite:///{file}"

    @property
    def resolved_artifacts_url(self) -> str:
        """The artifact URL with the embedded default filled in."""
        return self.artifacts_url or f"file://{self.data_directory.resolve() / 'artifacts'}"

    @property
    def resolved_group_key_file(self) -> Path:
        """The file of the secret key of the group hash."""
        return self.group_key_file or self.data_directory / "group.key"

    @property
    def resolved_signing_key_file(self) -> Path:
        """The file of the private key that signs exported knowledge."""
        return self.signing_key_file or self.data_directory / "signing.key"

    @property
    def resolved_spool_directory(self) -> Path:
        """The folder of the spool."""
        return self.spool_directory or self.data_directory / "spool"

    @property
    def resolved_job_memory_bytes(self) -> int:
        """Bytes of memory that the processes of one job on this machine may use together."""
        return self.job_memory_bytes or usable_memory() // 2

    @property
    def recent_requests_file(self) -> Path:
        """The file of requests that this host answered recently."""
        return self.resolved_spool_directory / "recent_requests.db"

    @property
    def engine_directory(self) -> Path:
        """The folder of engines that TensorRT has built for graphs on this host."""
        return self.data_directory / "tensorrt"

    @property
    def registry_cache_file(self) -> Path:
        """The file of the latest registry; a worker that starts while the database is unavailable serves it."""
        return self.data_directory / "registry.json"

    @property
    def hanging_models_file(self) -> Path:
        """The file of models that have hung workers of this host."""
        return self.data_directory / "hanging_models"

    @property
    def artifact_cache_directory(self) -> Path:
        """The folder of this host's copies of artifacts that are kept elsewhere."""
        return self.data_directory / "artifact-cache"

    @property
    def knowledge_index_directory(self) -> Path:
        """The folder of the index of fingerprints, a cache that jobs build on this host."""
        return self.data_directory / "knowledge-index"

    @property
    def audit_anchor_file(self) -> Path:
        """The file outside the database with the newest audit entry that this host has read."""
        return self.data_directory / "audit.anchor"

    def retention_for(self, environment: str) -> int | None:
        """Retention of an environment's predictions in days; None: unlimited."""
        return self.environment_retention_days.get(environment, self.retention_days)

    def label_error_rates(self, task: str, class_names: Sequence[str]) -> dict[str, float]:
        """Assumed share of wrong labels of each class of a task, by class name in the order of the classes.

        Raises:
            ConfigurationError: the setting names a class that the task lacks.

        Examples:
            >>> settings = Settings(label_error_rate=0.01, task_label_error_rates={"lesions": {"melanoma": 0.05}})
            >>> settings.label_error_rates("lesions", ["nevus", "melanoma"])
            {'nevus': 0.01, 'melanoma': 0.05}
        """
        own = {composed(name): rate for name, rate in self.task_label_error_rates.get(task, {}).items()}
        for name in own:
            if name not in class_names:
                raise ConfigurationError(
                    f"the task {task} has no class {name!r}.",
                    field=_source_of(f"task_label_error_rates.{task}.{name}"),
                    hint=f"Its classes are {', '.join(class_names)}.",
                )
        return {name: own.get(name, self.label_error_rate) for name in class_names}

    def policy_for(self, environment: str) -> PolicySettings:
        """The policy of an environment: its own values, else the common ones."""
        return _overlaid(self.policy, self.environment_policies.get(environment))

    def new_samples_for(self, environment: str) -> int | None:
        """Number of new predictions that starts an early cycle in an environment; None: no early cycles.

        Examples:
            >>> Settings().new_samples_for("clinic")
            100
        """
        number = self.cycle_new_samples
        if number is None:
            number = math.ceil(self.policy_for(environment).minimum_samples / 2)
        return number or None

    @property
    def poll_seconds(self) -> float | None:
        """Interval at which a monitor counts new predictions; None: it does not count them."""
        return None if self.cycle_new_samples == 0 else self.news_poll_seconds

    def limits_for(self, token: str) -> TokenLimits:
        """The limits of a token: its own values, else the common ones."""
        return _overlaid(self.token_limits, self.named_token_limits.get(token))

    @property
    def environment_modes(self) -> dict[str, str]:
        """Modes by environment, for environments with another mode than the common one."""
        modes = {name: self.policy_for(name).mode for name in self.environment_policies}
        return {name: mode for name, mode in modes.items() if mode != self.policy.mode}

    @property
    def modes_in_words(self) -> str:
        """The common mode with its effect, and the environments with another mode.

        Examples:
            >>> Settings(environment_policies={"clinic": PolicySettings(mode="shadow")}).modes_in_words
            'auto (cycles swap heads), but clinic: shadow'
        """
        own = ", ".join(f"{name}: {mode}" for name, mode in sorted(self.environment_modes.items()))
        return f"{self.policy.mode} ({_MODES[self.policy.mode]}){', but ' + own if own else ''}"

    def unknown_environments(self, known: Collection[str]) -> list[str]:
        """Sentences on environments in the settings that do not exist; the first prediction creates an environment.

        Args:
            known: names of the existing environments.
        """
        named = {
            "environment_policies": self.environment_policies,
            "environment_retention_days": self.environment_retention_days,
        }
        sentences: list[str] = []
        for setting, environments in named.items():
            for name in sorted(set(environments) - set(known)):
                # An environment with its own settings is not the intended spelling of another name.
                guess = suggest(name, sorted(set(known) - set(environments)))
                sentence = f"{setting} names {name!r}, and no prediction has come from it yet."
                sentences.append(f"{sentence} {guess}" if guess else sentence)
        return sentences

    @property
    def window_age(self) -> timedelta:
        """`window_seconds` as a time difference."""
        return timedelta(seconds=self.window_seconds)


def _overlaid(common: Group, own: Group | None) -> Group:
    """The common values, replaced by those that `own` sets."""
    if own is None:
        return common
    return common.model_copy(update={name: getattr(own, name) for name in own.model_fields_set})


def _source_of(field: str | None) -> str:
    """The environment variable, or file and key, of a field's value; nested fields have dots."""
    path = (field or "").split(".")
    given = {name.upper(): name for name in os.environ}
    for depth in range(len(path), 0, -1):
        variable = given.get(f"LIFELONG_{'__'.join(path[:depth])}".upper())
        if variable is not None:  # the rest of the path is inside the variable's JSON
            return ": ".join((variable, *(".".join(path[depth:]),) * (depth < len(path))))
    return f"{settings_file()}: {field}"


def settings_file() -> Path:
    """The settings file, which may not exist."""
    return Path(os.environ.get("LIFELONG_CONFIG", "lifelong.toml"))


def _refuse_unknown_variables(settings: type[BaseSettings]) -> None:
    for variable in os.environ:
        setting = variable.upper().removeprefix("LIFELONG_").lower()
        if variable.upper().startswith("LIFELONG_") and setting in RENAMED_SETTINGS:
            new = f"LIFELONG_{RENAMED_SETTINGS[setting].upper()}"
            raise ConfigurationError(
                "this setting has a new name.", field=variable, hint=f"Set {new} instead."
            )
    known = {f"LIFELONG_{name.upper()}" for name in settings.model_fields} | OTHER_VARIABLES
    for variable in os.environ:
        name = variable.upper().split("__", 1)[0]
        if name.startswith("LIFELONG_") and name not in known:
            hint = suggest(name, sorted(known)) or "List them all with `lifelong settings`."
            raise ConfigurationError("there is no such setting.", field=variable, hint=hint)
