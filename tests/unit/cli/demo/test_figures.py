"""Figures of the demo from documents of the admin API."""

import pytest

from lifelong.demo.figures import EstimatedAccuracy


def test_the_accuracy_is_read_from_the_estimated_performance():
    document = {"estimates": {"EC": [0.3, 0.2, 0.4], "AC": [0.83, 0.8, 0.86]}}
    assert EstimatedAccuracy.from_document(document) == EstimatedAccuracy(value=0.83, low=0.8, high=0.86)


@pytest.mark.parametrize("document", [None, {"estimates": {}}, {"estimates": {"AC": [None, None, None]}}])
def test_a_report_without_an_accuracy_has_none(document):
    assert EstimatedAccuracy.from_document(document) is None
