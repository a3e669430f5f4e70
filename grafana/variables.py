"""Variables of dashboards: the Prometheus, the population, and the base addresses of links."""

from typing import Final, TypeAlias

from grafana.queries import DATASOURCE, POPULATION
from grafana.sdk import dashboard, dashboard_builders

Variable: TypeAlias = (
    dashboard_builders.DatasourceVariable
    | dashboard_builders.QueryVariable
    | dashboard_builders.TextBoxVariable
    | dashboard_builders.CustomVariable
)

CONSOLE: Final = "http://127.0.0.1:3000/console"
RUNBOOKS: Final = f"{CONSOLE}/runbooks"
"""Shipped addresses, as in the alert rules; `lifelong grafana export` replaces both."""
_TOP = (10, 20, 50, 100)
"""Choices of how many populations a panel over time shows."""
_POPULATIONS = "lifelong_population_first_seen_timestamp_seconds"


def choose_prometheus() -> Variable:
    """The Prometheus that all panels ask."""
    return dashboard_builders.DatasourceVariable("datasource").label("Data source").type("prometheus")


def choose_population() -> list[Variable]:
    """One model, and one of its environments."""
    return [
        _query("model", "Model", f"label_values({_POPULATIONS}, model)"),
        _query("environment", "Environment", f'label_values({_POPULATIONS}{{model="$model"}}, environment)'),
    ]


def choose_class() -> Variable:
    """One class of the chosen population."""
    return _query("class", "Class", f"label_values(lifelong_prevalence_assumed{{{POPULATION}}}, class)")


def choose_instances() -> Variable:
    """Processes by their address; all unless some are chosen."""
    return (
        _query("instance", "Instance", 'label_values(up{job=~"lifelong-.*"}, instance)')
        .multi(multi=True)
        .include_all(include_all=True)
        .all_value(".+")
        .current(dashboard.VariableOption(selected=True, text=["All"], value=["$__all"]))
    )


def choose_top() -> Variable:
    """How many populations panels over time show: those that need a person most."""
    first = dashboard.VariableOption(selected=True, text="20", value="20")
    options = [dashboard.VariableOption(selected=n == 20, text=f"{n}", value=f"{n}") for n in _TOP]
    return (
        dashboard_builders.CustomVariable("top")
        .label("Most urgent")
        .values(",".join(map(str, _TOP)))
        .options(options)
        .current(first)
    )


def name_addresses() -> list[Variable]:
    """Base addresses of the console and of the runbooks."""
    return [
        _text("console", "Console", CONSOLE, "Address of the console as browsers reach it."),
        _text("runbooks", "Runbooks", RUNBOOKS, "Address of the runbooks, without the name of the alert."),
    ]


def _query(name: str, label: str, values: str) -> dashboard_builders.QueryVariable:
    return (
        dashboard_builders.QueryVariable(name)
        .label(label)
        .datasource(DATASOURCE)
        .query({"query": values, "refId": name, "qryType": 1})
        .definition(values)
        .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(dashboard.VariableSort.NATURAL_ASC)
        .multi(multi=False)
        .include_all(include_all=False)
    )


def _text(name: str, label: str, value: str, description: str) -> dashboard_builders.TextBoxVariable:
    return (
        dashboard_builders.TextBoxVariable(name)
        .label(label)
        .description(description)
        .default_value(value)
        .current(dashboard.VariableOption(selected=True, text=value, value=value))
    )
