"""The typed settings class: where settings come from, and what follows from them.

Sources, strongest first: environment variables `LIFELONG_*` (nested: `LIFELONG_POLICY__MINIMUM_SAMPLES`),
the file `lifelong.toml` in the working directory (or the file that `LIFELONG_CONFIG` names), the defaults. Each setting
is declared and documented in `setting_fields`.
"""

import math
import os
import re
import tomllib
import urllib.parse
from collections.abc import Collection, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Self, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsError,
    TomlConfigSettingsSource,
)

from lifelong_core.configuration.setting_fields import PolicySettings, SettingFields, TokenLimits
from lifelong_core.runtime.addresses import host_and_port, reachable_address
from lifelong_core.runtime.memory import usable_memory
from lifelong_core.runtime.redaction import redact
from lifelong_core.values.class_labels import composed
from lifelong_core.values.errors import ConfigurationError
from lifelong_core.values.validation_errors import as_input_error, suggest

Group = TypeVar("Group", bound=BaseModel)
OTHER_VARIABLES = frozenset(
    {"LIFELONG_CONFIG", "LIFELONG_TOKEN", "LIFELONG_URL", "LIFELONG_SHARED_DATA", "LIFELONG_JOB_DEVICE"}
)
"""Variables with our prefix that are not settings: the file, the service and the token of a client, the data of the
tests, and what a runner tells the process of a job."""
_MODES = {
    "auto": "cycles swap heads",
    "propose": "cycles propose heads, a person approves them",
    "shadow": "cycles only report",
}


class Settings(SettingFields):
    """All settings of a process; the defaults suit one machine."""

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
            raise ConfigurationError(
                redact(wrong.message), field=_source_of(wrong.field), hint=wrong.hint
            ) from error

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
    known = {f"LIFELONG_{name.upper()}" for name in settings.model_fields} | OTHER_VARIABLES
    for variable in os.environ:
        name = variable.upper().split("__", 1)[0]
        if name.startswith("LIFELONG_") and name not in known:
            hint = suggest(name, sorted(known)) or "List them all with `lifelong settings`."
            raise ConfigurationError("there is no such setting.", field=variable, hint=hint)
