"""`lifelong settings`: every setting, its value here and what it means."""

import re
from typing import Any

import click

from lifelong.commands.common import as_json, print_rows


def _without_password(url: str) -> str:
    """A URL as it may be shown to whoever looks over the shoulder."""
    return re.sub(r"(://[^:/@]*:)[^@]*@", r"\1***@", url)


@click.command(short_help="List every setting, its value and meaning.")
@as_json
def settings(*, as_json: bool) -> None:
    """List every setting with its value here (set LIFELONG_<NAME> or write it to lifelong.toml)."""
    from pydantic import BaseModel

    from lifelong_core.settings import Settings

    def rows(values: BaseModel, prefix: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for name, field in type(values).model_fields.items():
            value = getattr(values, name)
            if isinstance(value, BaseModel):
                found += rows(value, f"{prefix}{name.upper()}__")
            else:
                shown = _without_password(value) if isinstance(value, str) else value
                found.append(
                    {"variable": prefix + name.upper(), "value": shown, "meaning": field.description}
                )
        return found

    print_rows(rows(Settings.load(), "LIFELONG_"), as_json=as_json, empty="")
