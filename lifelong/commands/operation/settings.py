"""`lifelong settings`: every setting, its value and its meaning."""

from typing import Any

import click
from pydantic import BaseModel

from lifelong.commands.common import as_json
from lifelong.commands.tables import print_rows
from lifelong_core.configuration.serving_plan import serving_plan, worker_memory
from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.redaction import redact


def _shown(value: Any) -> Any:
    """Of policies for single environments only what was set; the rest is the common policy's."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: item.model_dump(exclude_unset=True) for key, item in value.items()}
    return value


@click.command(short_help="List every setting, its value and meaning.")
@as_json
def settings(*, as_json: bool) -> None:
    """List every setting with its value here (set LIFELONG_<NAME> or write it to lifelong.toml)."""
    loaded = Settings.load()
    plan = serving_plan(loaded)
    chosen = {
        "workers": plan.workers,
        "intra_op_threads": plan.threads,
        "job_memory_bytes": loaded.resolved_job_memory_bytes,
    }
    if not plan.uses_gpu:
        chosen["maximum_worker_memory_bytes"] = worker_memory(loaded, plan)

    def shown(name: str, value: Any) -> Any:
        return f"{chosen[name]} (chosen)" if value is None and name in chosen else _shown(value)

    def rows(values: BaseModel, prefix: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for name, field in type(values).model_fields.items():
            value = getattr(values, name)
            if isinstance(value, BaseModel):
                found += rows(value, f"{prefix}{name.upper()}__")
            else:
                found.append(
                    {
                        "variable": prefix + name.upper(),
                        "value": shown(name, value),
                        "meaning": field.description,
                    }
                )
        return found

    print_rows(rows(loaded, "LIFELONG_"), as_json=as_json, empty="", below="meaning")
