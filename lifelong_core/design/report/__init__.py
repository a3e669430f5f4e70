"""Reports for people: a validation or a comparison as one page of HTML."""

from lifelong_core.design.report.pages import comparison_html, validation_html

__all__ = ["comparison_html", "validation_html"]
