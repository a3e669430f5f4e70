"""`lifelong heads`: the post-processing heads of a model."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lifelong.commands.common import actor, as_json, open_store, print_rows

if TYPE_CHECKING:
    from lifelong_core.deploy import PostProcessingHead

environment_option = click.option(
    "--environment", help="The environment; without it, the model's default head is meant."
)


def _summary(head: "PostProcessingHead") -> dict[str, Any]:
    prevalence = zip(head.class_names, head.assumed_prevalence.tolist(), strict=True)
    return {"assumed_prevalence": ", ".join(f"{name} {share:.3f}" for name, share in prevalence)}


@click.group(short_help="Heads: list, show, publish, roll back.")
def heads() -> None:
    """Post-processing heads: list, show, publish, roll back."""


@heads.command("list")
@click.argument("model")
@as_json
def list_(model: str, *, as_json: bool) -> None:
    """List the heads of MODEL and where each is active."""
    with open_store() as store:
        chosen = store.models.get(model)
        registry = store.registry()
        active: dict[int, list[str]] = {}
        if registry is not None:
            for (model_id, environment), record in registry.heads.items():
                if model_id == chosen.id:
                    active.setdefault(record.version, []).append(environment or "(default head)")
        rows = [
            {
                "version": record.version,
                "active_in": ", ".join(sorted(active.get(record.version, []))),
                "created_at": record.created_at.isoformat(timespec="seconds"),
                "created_by": record.created_by,
                **_summary(record.head),
            }
            for record in store.heads.list(model)
        ]
    print_rows(rows, as_json=as_json, empty="No head yet: `lifelong calibrate`.")


@heads.command()
@click.argument("model")
@click.argument("version", type=int)
def show(model: str, version: int) -> None:
    """Print one head of MODEL as JSON."""
    with open_store() as store:
        click.echo(store.heads.get(model, version).head.to_json())


@heads.command()
@click.argument("model")
@click.argument("head", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@environment_option
def publish(model: str, head: Path, environment: str | None) -> None:
    """Publish the head in the JSON file HEAD; every worker serves it within a second."""
    from lifelong_core.deploy import PostProcessingHead

    with open_store() as store:
        record = store.heads.publish(
            model,
            PostProcessingHead.from_json(head.read_text(errors="replace")),
            environment=environment,
            actor=actor(),
        )
    click.echo(f"Published head {record.version}.")


@heads.command()
@click.argument("model")
@environment_option
def rollback(model: str, environment: str | None) -> None:
    """Go back to the head that was active before; every worker serves it within a second."""
    with open_store() as store:
        record = store.heads.rollback(model, environment=environment, actor=actor())
    click.echo(f"Head {record.version} is active again.")
