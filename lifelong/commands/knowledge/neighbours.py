"""`lifelong neighbours`: what to transfer from which task."""

import json
from typing import Any

import click

from lifelong.commands.common import as_json, level_option, task_argument
from lifelong.commands.connection import connect
from lifelong.commands.tables import print_rows, wrap_text
from lifelong.printing import echo
from lifelong_core.develop.knowledge.entry import SCENARIOS
from lifelong_core.develop.ranking.suggestion import Neighbour, Ranking, conclude
from lifelong_core.operations.develop.knowledge import ListNeighbours


@click.command(short_help="What to transfer from which task, with the evidence.")
@task_argument
@click.option("--scenario", required=True, type=click.Choice(SCENARIOS), help="What would be transferred.")
@click.option("--measure", default="BA", show_default=True, help="Acronym of the measure of the gain.")
@click.option(
    "--strategy",
    default="learned",
    show_default=True,
    help="learned, a method of fingerprints such as VDNA, or a baseline.",
)
@level_option(0.8)
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=5, show_default=True, help="Largest number of sources."
)
@as_json
def neighbours(
    task: str, scenario: Any, measure: str, strategy: str, level: float, limit: int, *, as_json: bool
) -> None:
    """Rank the tasks of the knowledge base as sources for TASK, best first.

    Each source has its expected gain of the measure over training without transfer, with an interval, and the reasons.
    The command says so where no source is expected to help.

    \b
    Example:
      lifelong neighbours lesions --scenario pretraining --measure AUROC
    """
    chosen = {
        "task": task,
        "scenario": scenario,
        "measure": measure,
        "strategy": strategy,
        "confidence": level,
    }
    with connect() as connection:
        document = connection.send(ListNeighbours.read({**chosen, "limit": limit if as_json else None}))
    if as_json:
        echo(json.dumps(document))
    else:
        _print_ranking(Ranking.from_document(document), limit)


def _print_ranking(ranking: Ranking, limit: int) -> None:
    echo(wrap_text(conclude(ranking)), bold=True)
    if not ranking.suggestions and ranking.neighbours:
        print_rows([_neighbour_row(one) for one in ranking.neighbours[:limit]], as_json=False, empty="")
        return
    rows = [
        {
            "rank": rank,
            "source": one.source,
            f"gain_of_{ranking.measure}": f"{one.expected_gain:+.3f}",
            f"{100 * ranking.confidence:g}_%_interval": f"{one.low:+.3f} to {one.high:+.3f}",
            "why": " ".join((*one.reasons, *one.limits)),
        }
        for rank, one in enumerate(ranking.suggestions[:limit], 1)
    ]
    print_rows(rows, as_json=False, empty="There is no source to rank.", below="why")


def _neighbour_row(neighbour: Neighbour) -> dict[str, Any]:
    return {
        "source": neighbour.source,
        "distance": neighbour.distance,
        "cards_agree_to": f"{neighbour.card_similarity:.0%}",
    }
