"""`lifelong grafana`: the dashboards and alert rules that come with the product."""

import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from lifelong.commands.common import CommandGroup, replace_option
from lifelong.commands.durations import Duration
from lifelong.commands.results import write_text
from lifelong.monitoring_files import ADDRESSES, export_monitoring_files
from lifelong.printing import echo
from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.addresses import host_and_port
from lifelong_core.values.errors import InvalidInputError


@click.group(cls=CommandGroup, short_help="Write dashboards and alert rules.")
def grafana() -> None:
    """Dashboards for Grafana and alert rules for Prometheus."""


_grafana_url = click.option("--grafana-url", metavar="URL", help="Address of Grafana, for the links.")


@grafana.command(short_help="Write dashboards, alert rules and provisioning to a folder.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--service-url", metavar="URL", help="Address of the service, for the links to its console.")
@_grafana_url
@click.option("--runbooks-url", metavar="URL", help="Address of other runbooks than those in the console.")
@replace_option()
def export(
    folder: Path, *, service_url: str | None, grafana_url: str | None, runbooks_url: str | None, replace: bool
) -> None:
    """Write the files for Prometheus and Grafana to FOLDER.

    They are alert rules with tests, a scrape configuration, an example for Alertmanager, the dashboards, and
    Grafana's provisioning. Alerts and dashboards link to console, Grafana and runbooks at the given addresses,
    else on this machine.

    Files that you changed are kept: the command then writes nothing and names them.
    """
    outcome = export_monitoring_files(
        folder, replace=replace, service=service_url, grafana=grafana_url, runbooks=runbooks_url
    )
    for name in outcome.written:
        echo(f"wrote {folder / name}")
    if outcome.unchanged:
        echo(f"{len(outcome.unchanged)} files are there already and up to date")
    echo(_next_steps(folder))


@grafana.command(short_help="Draw a dashboard as HTML, without Grafana.")
@click.option(
    "--dashboard",
    "name",
    default="overview",
    show_default=True,
    help="overview, population, quality, service or develop.",
)
@click.option(
    "--prometheus",
    "url",
    metavar="URL",
    default="http://127.0.0.1:9090",
    show_default=True,
    help="Address of Prometheus.",
)
@click.option(
    "--var", "variables", metavar="NAME=VALUE", multiple=True, help="Value of a variable, such as model."
)
@click.option(
    "--since", "age", type=Duration(), help="Length of the time range up to now; default: the dashboard's."
)
@_grafana_url
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), required=True, help="Page to write.")
def preview(
    *,
    name: str,
    url: str,
    variables: tuple[str, ...],
    age: timedelta | None,
    grafana_url: str | None,
    html: Path,
) -> None:
    """Draw a dashboard from the values in Prometheus: layout, titles and figures as Grafana will show them.

    The page needs no Grafana and no further file. It shows the state of this moment.

    \b
    Example:
      lifelong grafana preview --dashboard population --var environment=clinic-a --html preview.html
    """
    from lifelong.grafana_preview import preview as previews
    from lifelong.grafana_preview.source import Prometheus

    boards = previews.dashboards()
    if name not in boards:
        raise InvalidInputError(
            f"there is no dashboard {name!r}.", field="--dashboard", hint=f"There are {', '.join(boards)}."
        )
    chosen = {name: value for name, _, value in (one.partition("=") for one in variables)}
    now = datetime.now(UTC)
    since = now - (age or Duration().convert(boards[name]["time"]["from"].removeprefix("now-"), None, None))
    prometheus = Prometheus(url, since, now)
    page = previews.preview(boards[name], prometheus, chosen, grafana_url or ADDRESSES["grafana"])
    write_text(html, page, field="--html")
    echo(f"wrote {html}")


def _next_steps(folder: Path) -> str:
    settings = Settings.load()
    ours = [host_and_port(settings.host, port) for port in (settings.port, settings.monitor_port)]
    fields = Settings.model_fields
    default_host = fields["host"].default
    shipped = [f"{default_host}:{fields[port].default}" for port in ("port", "monitor_port")]
    place = shlex.quote(str(folder))
    absolute = shlex.quote(str(folder.resolve()))
    lines = [""]
    if ours != shipped:
        lines += [
            f"Your settings listen on {' and '.join(ours)}:",
            f"change the targets in {folder / 'prometheus' / 'prometheus.yml'}.",
            "",
        ]
    lines += [
        "Next:",
        f"  promtool check rules {place}/prometheus/rules.yml",
        f"  prometheus --config.file {place}/prometheus/prometheus.yml",
        "  docker run --network host -e GF_SERVER_HTTP_PORT=3001 \\",
        f"    -v {absolute}/provisioning:/etc/grafana/provisioning \\",
        f"    -v {absolute}/dashboards:/var/lib/grafana/dashboards grafana/grafana",
    ]
    return "\n".join(lines)
