"""The dashboards: what all have in common, and their JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from grafana.links import PREFIX, TAG, link_boards, link_page
from grafana.panels import Panel
from grafana.sdk import JSONEncoder, dashboard, dashboard_builders
from grafana.variables import Variable, choose_prometheus, name_addresses


@dataclass(frozen=True)
class Board:
    """A dashboard.

    Attributes:
        name: of its file; with a prefix, its uid.
        title: after the name of the product.
        description: what it answers.
        variables: beside those of all dashboards.
        annotations: marks on the time axis.
        panels: in order; those of one line have one height.
        since: beginning of the time range.
    """

    name: str
    title: str
    description: str
    panels: Sequence[Panel]
    variables: Sequence[Variable] = ()
    annotations: Sequence[dashboard_builders.AnnotationQuery] = field(default=())
    since: str = "now-24h"


def build(board: Board) -> dashboard.Dashboard:
    """Build a dashboard as a model of the SDK."""
    built = (
        dashboard_builders.Dashboard(f"Lifelong: {board.title}")
        .uid(f"{PREFIX}{board.name}")
        .description(board.description)
        .tags([TAG])
        .timezone("browser")
        .time(board.since, "now")
        .refresh("30s")
        .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        .readonly()
        .link(link_boards())
        .link(link_page("Console", "${console}", "Decide there: approve, roll back, pin."))
    )
    for annotation in board.annotations:
        built = built.annotation(annotation)
    for variable in (choose_prometheus(), *board.variables, *name_addresses()):
        built = built.with_variable(variable)
    for panel in board.panels:
        built = built.with_panel(panel)
    found = built.build()
    for identifier, panel in enumerate(found.panels or [], start=1):
        panel.id_val = identifier
    return found


def to_json(found: dashboard.Dashboard) -> str:
    """Return the JSON document that Grafana provisions, with stable formatting."""
    document = json.loads(json.dumps(found, cls=JSONEncoder))
    for annotation in document["annotations"].get("list", ()):
        # The SDK's default hides the annotation's switch in a menu.
        annotation.pop("placement")
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def documents(boards: Sequence[Board]) -> Mapping[str, str]:
    """The JSON document of each dashboard, by the name of its file."""
    return {f"{PREFIX}{board.name}.json": to_json(build(board)) for board in boards}
