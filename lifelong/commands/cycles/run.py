"""`lifelong cycles run`: a cycle of one population now."""

import json
from datetime import timedelta
from uuid import UUID

import click

from lifelong.commands.common import as_json, open_store, population_arguments
from lifelong.commands.cycles.cycle_text import print_cycle
from lifelong.commands.jobs import run_job, timeout_option
from lifelong.commands.tables import wrap_text
from lifelong.printing import echo

NOT_RECORDED = 1
"""Exit status where no cycle was recorded."""


@click.command(short_help="Run a cycle of a population now.")
@population_arguments
@timeout_option
@as_json
def run(model: str, environment: str, timeout: timedelta, *, as_json: bool) -> None:
    """Run a cycle of MODEL in ENVIRONMENT (`default`) now, whether predictions are new or not.

    A monitor runs it, as a job. The cycle is one like any other: it holds the lease of the population, is recorded, and
    obeys policy, mode and pins. The audit log names who asked for it. It exits with 0 where the cycle was recorded,
    else with 1.

    \b
    Example:
      lifelong cycles run resnet clinic-a
    """
    with open_store() as store:
        payload = {
            "model": store.models.get(model).reference,
            "environment": store.environments.get(environment).name,
        }
        result = run_job(store, "cycle", payload, timeout).result or {}
        if as_json:
            echo(json.dumps(result))
        elif result["cycle"] is not None:
            print_cycle(store, store.cycles.get(UUID(result["cycle"])))
        else:
            echo(wrap_text(f"No cycle was recorded: {result['reason']}."))
    if result["cycle"] is None:
        raise click.exceptions.Exit(NOT_RECORDED)
