"""The dashboard: its rows, variables and annotations."""

import json

from grafana.panels import DATASOURCE, POPULATION, Query, build_query
from grafana.rows import (
    cycles,
    decision_rule,
    estimated,
    evidence,
    jobs,
    prediction_log,
    prevalence,
    realised,
    state,
    traffic,
)
from grafana.sdk import JSONEncoder, dashboard, dashboard_builders

UID = "lifelong"

# count_values turns the value into a label that the annotation can print; the product is the time of activation.
ACTIVATIONS = (
    f'(count_values by (model, environment) ("head", lifelong_head_version{{{POPULATION}}}) > bool 0)'
    " * on (model, environment) group_left"
    f" max by (model, environment) (lifelong_head_activated_timestamp_seconds{{{POPULATION}}}) * 1000"
)

AFFECTED = (
    f'(count_values by (model, environment) ("decisions", lifelong_affected_decisions{{{POPULATION}}}) > bool 0)'
    " * on (model, environment) group_left"
    f" max by (model, environment) (lifelong_head_activated_timestamp_seconds{{{POPULATION}}}) * 1000"
)


_ROWS = {
    "State": state,
    "Prevalence of $model in $environment": prevalence,
    "Evidence and gain": evidence,
    "Cycles and heads": cycles,
    "Estimated performance (no labels)": estimated,
    "Decision rule": decision_rule,
    "Realised quality, where labels have arrived": realised,
    "Traffic": traffic,
    "Prediction log": prediction_log,
    "Jobs": jobs,
}


def build() -> dashboard.Dashboard:
    """Build the dashboard as a model of the SDK."""
    board = (
        dashboard_builders.Dashboard("Lifelong")
        .uid(UID)
        .description(
            "Classifier decisions under prevalence shifts: traffic, estimated prevalence, cycles and swaps."
        )
        .tags(["lifelong"])
        .timezone("browser")
        .time("now-6h", "now")
        .refresh("10s")
        .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        .editable()
        .annotation(_annotate_swaps())
        .annotation(_annotate_affected())
    )
    for variable in _build_variables():
        board = board.with_variable(variable)
    for title, row in _ROWS.items():
        board = board.with_row(dashboard_builders.Row(title))
        for panel in row.build_panels():
            board = board.with_panel(panel)
    return _number_panels(board.build())


def to_json(board: dashboard.Dashboard) -> str:
    """Return the JSON document that Grafana provisions, with stable formatting."""
    document = json.loads(json.dumps(board, cls=JSONEncoder))
    for annotation in document["annotations"]["list"]:
        # The SDK's default hides the annotation's switch in a menu.
        annotation.pop("placement")
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _build_variables() -> list[dashboard_builders.DatasourceVariable | dashboard_builders.QueryVariable]:
    population = "lifelong_population_first_seen_timestamp_seconds"
    model = f"label_values({population}, model)"
    environment = f'label_values({population}{{model="$model"}}, environment)'
    classes = f"label_values(lifelong_prevalence_assumed{{{POPULATION}}}, class)"
    return [
        dashboard_builders.DatasourceVariable("datasource").label("Prometheus").type("prometheus"),
        _build_variable("model", "Model", model),
        _build_variable("environment", "Environment", environment),
        _build_variable("class", "Class", classes)
        .multi(multi=True)
        .include_all(include_all=True)
        .current(_select_all()),
    ]


def _build_variable(name: str, label: str, values: str) -> dashboard_builders.QueryVariable:
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


def _select_all() -> dashboard.VariableOption:
    return dashboard.VariableOption(selected=True, text=["All"], value=["$__all"])


def _annotate_swaps() -> dashboard_builders.AnnotationQuery:
    return _build_annotation(
        "Head swaps",
        ACTIVATIONS,
        title="Head {{head}} became active",
        text="{{model}} in {{environment}}",
        colour="purple",
    )


def _annotate_affected() -> dashboard_builders.AnnotationQuery:
    return _build_annotation(
        "Affected decisions",
        AFFECTED,
        title="{{decisions}} decisions affected",
        text="{{model}} in {{environment}}: the new head would make them otherwise (lifelong cycles affected)",
        colour="orange",
    )


def _build_annotation(
    name: str, expression: str, *, title: str, text: str, colour: str
) -> dashboard_builders.AnnotationQuery:
    """Marks at the times that the values of the expression give, in milliseconds."""
    return (
        dashboard_builders.AnnotationQuery()
        .name(name)
        .datasource(DATASOURCE)
        .enable(enable=True)
        .hide(hide=False)
        .icon_color(colour)
        .target(build_query("Anno", Query(expression, "")))
        .expr(expression)
        .title_format(title)
        .text_format(text)
        .tag_keys("environment")
        .use_value_for_time(use_value_for_time=True)
    )


def _number_panels(board: dashboard.Dashboard) -> dashboard.Dashboard:
    for identifier, panel in enumerate(board.panels or [], start=1):
        panel.id_val = identifier
    return board
