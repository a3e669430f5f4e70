"""The settings that determine the behaviour of a monitor; all monitors of an installation need the same values."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from lifelong_core.configuration.setting_fields import EQUAL_FOR_MONITORS
from lifelong_core.configuration.settings import Settings

_SHOWN = 8


def monitor_settings(settings: Settings) -> dict[str, Any]:
    """The values by dotted names; of environments only the differences from the common policy.

    Examples:
        >>> monitor_settings(Settings())["policy.mode"]
        'auto'
    """
    shared = {name for name, field in Settings.model_fields.items() if EQUAL_FOR_MONITORS in field.metadata}
    values = settings.model_dump(mode="json", include=shared)
    common = settings.policy.model_dump(mode="json")
    values |= {f"policy.{name}": value for name, value in common.items()}
    for environment in settings.environment_policies:
        own = settings.policy_for(environment).model_dump(mode="json")
        values |= {
            f"environment_policies.{environment}.{name}": value
            for name, value in own.items()
            if value != common[name]
        }
    return values


def settings_digest(values: Mapping[str, Any]) -> str:
    """Digest of eight characters, to compare the settings of two monitors."""
    document = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(document.encode()).hexdigest()[:_SHOWN]


def describe_differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The values that differ, as texts: "policy.mode (shadow, auto)".

    Examples:
        >>> describe_differences({"policy.mode": "shadow"}, {"policy.mode": "auto", "quantifier": "EMQ"})
        ['policy.mode (shadow, auto)', 'quantifier (not set, EMQ)']
    """
    return list(_differences(one, other))


def _differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted({*one, *other}):
        if one.get(name) != other.get(name):
            yield f"{name} ({_text(one.get(name))}, {_text(other.get(name))})"


def _text(value: Any) -> str:
    if value is None:
        return "not set"
    return value if isinstance(value, str) else json.dumps(value)
