"""Marks on the time axis: changes of heads, affected decisions, changes of the prevalence."""

from grafana.queries import BY_POPULATION, DATASOURCE, POPULATION, build_query
from grafana.sdk import dashboard_builders

_RECENT = "lifelong_head_activated_timestamp_seconds"
_SHOWN_SECONDS = 600
"""A mark is asked for in this time after its event only: each event once, also with 500 populations."""


def mark_swaps(matchers: str = POPULATION) -> dashboard_builders.AnnotationQuery:
    """Each change of the head that serves a population: a swap, a publication or a roll-back."""
    return _mark(
        "Changes of the head",
        _at(_RECENT, f'count_values {BY_POPULATION} ("head", lifelong_head_version{{{matchers}}})', matchers),
        title="Head {{head}} became active",
        text="{{model}} in {{environment}}",
        colour="purple",
    )


def mark_affected(matchers: str = POPULATION) -> dashboard_builders.AnnotationQuery:
    """Earlier decisions that a swap affects."""
    return _mark(
        "Affected decisions",
        _at(
            _RECENT,
            f'count_values {BY_POPULATION} ("decisions", lifelong_affected_decisions{{{matchers}}})',
            matchers,
            shown=86400,
        ),
        title="{{decisions}} decisions affected",
        text="{{model}} in {{environment}}: the new head would make them otherwise (lifelong cycles affected)",
        colour="orange",
    )


def mark_changes(matchers: str = POPULATION) -> dashboard_builders.AnnotationQuery:
    """Change points of the prevalence, as the newest cycles date them."""
    return _mark(
        "Changes of the prevalence",
        f"max {BY_POPULATION} (lifelong_prevalence_changed_timestamp_seconds{{{matchers}}}) * 1000",
        title="The prevalence changed",
        text="{{model}} in {{environment}}",
        colour="blue",
    )


def _at(time: str, valued: str, matchers: str, *, shown: int = _SHOWN_SECONDS) -> str:
    """PromQL: the time in milliseconds, with a value as a label that the annotation can print.

    count_values turns the value into a label; the product is the time.
    """
    moment = f"max {BY_POPULATION} ({time}{{{matchers}}})"
    recent = f"({moment} > time() - {shown}) * 1000"
    return f"({valued} > bool 0) * on (model, environment) group_left () {recent}"


def _mark(
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
        .target(build_query("Anno", expression))
        .expr(expression)
        .title_format(title)
        .text_format(text)
        .tag_keys("environment")
        .use_value_for_time(use_value_for_time=True)
    )
