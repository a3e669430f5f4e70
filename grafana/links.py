"""Links between dashboards, to the console and to runbooks. Base addresses are variables of the dashboards."""

from typing import Final

from grafana.sdk import dashboard, dashboard_builders

PREFIX: Final = "lifelong-"
"""Of the uids of all dashboards."""
TAG: Final = "lifelong"
_SAME_TIME: Final = "var-datasource=${datasource}&${__url_time_range}"


def link_board(title: str, name: str, variables: str = "") -> dashboard_builders.DashboardLink:
    """A data link to a dashboard with the same datasource and time range, and these URL parameters."""
    parameters = f"{variables}&{_SAME_TIME}" if variables else _SAME_TIME
    return _data_link(title, f"/d/{PREFIX}{name}?{parameters}")


def link_population(model: str, environment: str) -> list[dashboard_builders.DashboardLink]:
    """Data links to the dashboard and to the console page of a population; both arguments are Grafana expressions."""
    variables = f"var-model={model}&var-environment={environment}"
    return [
        link_board("Population", "population", variables),
        link_board("Quality", "quality", variables),
        link_console("Console", f"populations/{model}/{environment}"),
    ]


def link_console(title: str, path: str) -> dashboard_builders.DashboardLink:
    """A data link to a page of the console."""
    return _data_link(title, f"${{console}}/{path}", is_elsewhere=True)


def link_runbook(name: str) -> dashboard_builders.DashboardLink:
    """A data link to a runbook; the name may be a Grafana expression."""
    return _data_link("Runbook", f"${{runbooks}}/{name}", is_elsewhere=True)


def value_of(column: str) -> str:
    """Grafana's expression for another cell of the row; the title of the column is one word."""
    return f"${{__data.fields.{column}}}"


def label_of(name: str) -> str:
    """Grafana's expression for a label of the series."""
    return f"${{__field.labels.{name}}}"


def link_boards() -> dashboard_builders.DashboardLink:
    """Links in the head of a dashboard to all dashboards, with time range and variables."""
    return (
        dashboard_builders.DashboardLink("Dashboards")
        .type(dashboard.DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .as_dropdown(as_dropdown=False)
        .keep_time(keep_time=True)
        .include_vars(include_vars=True)
    )


def link_page(title: str, url: str, tooltip: str) -> dashboard_builders.DashboardLink:
    """A link in the head of a dashboard to a page elsewhere."""
    return (
        dashboard_builders.DashboardLink(title)
        .type(dashboard.DashboardLinkType.LINK)
        .icon("external link")
        .tooltip(tooltip)
        .url(url)
        .target_blank(target_blank=True)
    )


def _data_link(title: str, url: str, *, is_elsewhere: bool = False) -> dashboard_builders.DashboardLink:
    return (
        dashboard_builders.DashboardLink(title)
        .type(dashboard.DashboardLinkType.LINK)
        .url(url)
        .target_blank(target_blank=is_elsewhere)
    )
