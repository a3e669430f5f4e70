"""`lifelong grafana`: the dashboard and alert rules that come with the product."""

import shlex
from pathlib import Path

import click

from lifelong.commands.common import CommandGroup, replace_option
from lifelong.monitoring_files import Addresses, export_monitoring_files
from lifelong.printing import echo
from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.addresses import host_and_port


@click.group(cls=CommandGroup, short_help="Write dashboards and alert rules.")
def grafana() -> None:
    """Dashboards for Grafana and alert rules for Prometheus."""


@grafana.command(short_help="Write dashboards, alert rules and provisioning to a folder.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--console-url", metavar="URL", help="Address of the console, for the links.")
@click.option("--grafana-url", metavar="URL", help="Address of Grafana, for the links.")
@click.option("--runbooks-url", metavar="URL", help="Address of other runbooks than those in the console.")
@replace_option()
def export(
    folder: Path, *, console_url: str | None, grafana_url: str | None, runbooks_url: str | None, replace: bool
) -> None:
    """Write the files for Prometheus and Grafana to FOLDER.

    They are alert rules with tests, a scrape configuration, an example for Alertmanager, the dashboards, and
    Grafana's provisioning. Alerts and dashboards link to console, Grafana and runbooks at the given addresses,
    else on this machine.

    Files that you changed are kept: the command then writes nothing and names them.
    """
    addresses = Addresses(console_url, grafana_url, runbooks_url)
    outcome = export_monitoring_files(folder, addresses, replace=replace)
    for name in outcome.written:
        echo(f"wrote {folder / name}")
    if outcome.unchanged:
        echo(f"{len(outcome.unchanged)} files are there already and up to date")
    echo(_next_steps(folder))


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
