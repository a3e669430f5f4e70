"""Dossier and periodic report as self-contained HTML pages, fit for printing."""

from datetime import UTC, datetime
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from lifelong_core.change_control import charts
from lifelong_core.charts.style import STYLE
from lifelong_core.entities.change_control import Dossier, PeriodReport
from lifelong_core.entities.performance import Metric
from lifelong_core.store.performance.statements import describe_metric

DECISIONS = {
    "automatic": "automatic, within the policy",
    "approved": "proposed by a cycle, approved by a person",
    "by a person": "by a person",
}
KINDS = {
    "refused": "refused to swap",
    "proposed": "proposed a head, not decided",
    "rejected": "proposed a head, which a person rejected",
    "shadow": "only reported: the mode was shadow",
}
REASONS = {"publish": "published", "rollback": "rolled back", "swap": "swapped by a cycle"}
EFFECTS = {
    "keep": "kept the head",
    "swap": "swapped it",
    "refuse": "refused to swap",
    "proposes a swap": "proposed a swap",
    "would swap": "would have swapped (mode shadow)",
}


def dossier_html(dossier: Dossier) -> str:
    """The change-control dossier as a page without scripts and external files; equal dossiers give equal pages."""
    policies = dossier.policies
    changed = {
        rule.name
        for one in policies
        for rule in one.rules
        if any(rule not in other.rules for other in policies)
    }
    return _render("dossier.html.jinja", dossier, changed=changed)


def report_html(report: PeriodReport) -> str:
    """The periodic report as a page without scripts and external files; equal reports give equal pages."""
    numbers = [
        sum(day.decisions[place] for day in report.served) for place in range(len(report.class_names) + 1)
    ]
    names = [*report.class_names, "no decision"]
    if not numbers[-1]:
        names, numbers = names[:-1], numbers[:-1]
    return _render(
        "report.html.jinja",
        report,
        names=names,
        numbers=numbers,
        decisions=charts.decision_chart(names, numbers) if sum(numbers) else None,
        prevalences=charts.prevalence_charts(report),
        performances=charts.performance_charts(report),
        titles=charts.TITLES,
    )


def _render(template: str, document: Dossier | PeriodReport, **values: Any) -> str:
    return _environment().get_template(template).render(document=document, **values)


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def _metric(metric: Metric | None) -> str:
    return describe_metric(metric) or "none"


@cache
def _environment() -> Environment:
    """Templates and their filters; all values are escaped."""
    made = Environment(
        loader=PackageLoader("lifelong_core.change_control"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    own: Any = made
    own.filters |= {"moment": _moment, "metric": _metric}
    own.globals |= {
        "chart_style": STYLE,
        "decisions_in_words": DECISIONS,
        "kinds": KINDS,
        "reasons": REASONS,
        "effects": EFFECTS,
    }
    return made
