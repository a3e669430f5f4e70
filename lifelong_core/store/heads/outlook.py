"""What the next cycles may do to a head in force, in words."""

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from lifelong_core.entities.registry import Model, Registry
from lifelong_core.store.registry.heartbeats import MonitorProcess, strictest_mode
from lifelong_core.store.store import Store

MOST_NAMES = 5
"""Environments that a sentence names."""


def describe_users(own: Collection[str], environments: Collection[str]) -> str:
    """Which environments use the default head of a model.

    Args:
        own: environments in which the model has a head of their own.
        environments: all environments.
    """
    others = sorted(set(environments).difference(own))
    users = f"used in {_names([*(repr(name) for name in others), 'every new environment'])}"
    without = f"not in {_names([repr(name) for name in sorted(own)])}, where the model has another head"
    return f"{users}; {without}" if own else users


def describe_outlook(store: Store, model: Model, environment: str | None, *, at: datetime) -> str:
    """Whether and when a cycle may replace the head that is in force, and how to prevent it.

    Args:
        store: of the model.
        model: whose head.
        environment: where; None: the model's default head.
        at: the present time.

    Raises:
        UnavailableError: the database does not answer.
    """
    users = ""
    if environment is None:
        registry = store.registry()
        users = "Default head: " + describe_users(_own(registry, model), registry.environments) + ". "
    pin = store.heads.pin_in_force(model.reference, environment)
    if pin is not None:
        return f"{users}It is pinned by {pin.pinned_by} ({pin.reason!r}): no cycle replaces it."
    living = [one for one in store.monitors.list(visits=False) if not one.is_lost]
    if not living:
        return f"{users}It is not pinned, but no monitor is running that could replace it now."
    mode = strictest_mode(living, environment or "", "auto")
    there = "there" if environment is None else "here"
    if mode == "shadow":
        return f"{users}The monitor's mode is shadow: no cycle replaces it."
    if mode == "propose":
        return f"{users}The monitor's mode is propose: cycles propose heads {there}, a person approves them."
    option = "" if environment is None else f" --environment {environment}"
    return (
        f"{users}It is not pinned, and the monitor's mode is auto: a cycle may publish another head {there}"
        f" {_when(living, environment or '', at)}. To prevent that:"
        f" `lifelong heads pin {model.reference}{option} --reason ...`."
    )


def _own(registry: Registry, model: Model) -> set[str]:
    return {place for model_id, place in registry.heads if model_id == model.id and place is not None}


def _when(living: Sequence[MonitorProcess], environment: str, at: datetime) -> str:
    """When the next cycle comes."""
    intervals = {one.heartbeat.interval_seconds for one in living}
    due = min(math.floor(at.timestamp() / interval + 1) * interval for interval in intervals)
    minutes = math.ceil((due - at.timestamp()) / 60)
    moment = (
        f"at {datetime.fromtimestamp(due, UTC):%H:%M} UTC (in {minutes} minute{'' if minutes == 1 else 's'})"
    )
    early = [_early_samples(one.heartbeat.settings, environment) for one in living]
    counts = [count for count in early if count]
    if not counts:
        return moment
    return f"{moment}, or as soon as {min(counts)} predictions are new"


def _early_samples(settings: Mapping[str, Any], environment: str) -> int:
    """New predictions that make an early cycle due; 0: none do, or the monitor does not say."""
    number = settings.get("cycle_new_samples")
    if number is None:
        common = settings.get("policy.minimum_samples", 0)
        number = math.ceil(settings.get(f"environment_policies.{environment}.minimum_samples", common) / 2)
    return int(number)


def _names(names: Sequence[str]) -> str:
    shown = list(names[:MOST_NAMES]) if len(names) > MOST_NAMES + 1 else list(names)
    if len(shown) < len(names):
        shown.append(f"{len(names) - len(shown)} more")
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
