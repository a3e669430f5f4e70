"""Decisions that differ under another head, against a transcription of the definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.deploy import CutOffs, PostProcessingHead
from lifelong_core.deploy.adaptation.affected_decisions import AffectedCounts, DecisionChange, find_affected
from lifelong_core.values.errors import InvalidInputError


def make(rng: np.random.Generator, classes: int, *, abstains: bool, size: float = 1.0) -> PostProcessingHead:
    return PostProcessingHead(
        rng.uniform(0.5, 3),
        rng.normal(size=classes),
        size * rng.uniform(0, 5, size=(classes, classes + abstains)),
        rng.dirichlet(np.ones(classes)),
        tuple(f"class {k}" for k in range(classes)),
    )


def draw(rng: np.random.Generator, classes: int, rows: int) -> np.ndarray:
    return (3 * rng.normal(size=(rows, classes))).astype(np.float32)


@given(
    classes=st.sampled_from([2, 3, 8]),
    abstains=st.booleans(),
    size=st.sampled_from([1e-6, 1.0, 1e9]),
    rows=st.integers(0, 60),
    seed=st.integers(0, 10_000),
)
def test_each_difference_costs_what_the_new_head_expects(
    classes: int, abstains: bool, size: float, rows: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    head = make(rng, classes, abstains=abstains, size=size)
    logits, logged = draw(rng, classes, rows), rng.integers(classes + abstains, size=rows)
    found = find_affected(logits, logged, head)
    expected = []
    for row, decision in enumerate(logged.tolist()):
        output = head.apply(logits[row : row + 1])
        if output.decisions[0] != decision:
            costs = [
                float(sum(output.probabilities[0, j] * head.costs[j, k] for j in range(classes)))
                for k in (decision, int(output.decisions[0]))
            ]
            expected.append((row, decision, int(output.decisions[0]), costs[0] - costs[1]))
    assert found.predictions == rows
    assert found.rows.tolist() == [row for row, *_ in expected]
    assert found.decisions.tolist() == [decision for _, decision, *_ in expected]
    assert found.new_decisions.tolist() == [new for *_, new, _ in expected]
    assert found.expected_costs == pytest.approx([cost for *_, cost in expected], abs=1e-12 * size)
    assert (found.expected_costs >= 0).all()
    counts = found.counts
    assert (counts.predictions, counts.affected) == (rows, len(expected))
    assert counts.expected_cost == pytest.approx(sum(cost for *_, cost in expected))
    assert AffectedCounts.from_document(counts.to_document()) == counts


@given(rows=st.integers(2, 60), cut=st.integers(0, 60), seed=st.integers(0, 10_000))
def test_parts_add_up_to_the_whole(rows: int, cut: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    head = make(rng, 3, abstains=True)
    logits, logged = draw(rng, 3, rows), rng.integers(4, size=rows)
    whole = find_affected(logits, logged, head)
    parts = [find_affected(logits[part], logged[part], head) for part in (slice(0, cut), slice(cut, None))]
    # To the last bit: pages of a list are sorted by these numbers, wherever a block begins.
    assert b"".join(part.expected_costs.tobytes() for part in parts) == whole.expected_costs.tobytes()
    both, counts = parts[0].counts + parts[1].counts, whole.counts
    assert (both.predictions, both.affected) == (counts.predictions, counts.affected)
    assert both.expected_cost == pytest.approx(counts.expected_cost)
    assert {(c.decision, c.new_decision, c.count) for c in both.changes} == {
        (c.decision, c.new_decision, c.count) for c in counts.changes
    }


@given(seed=st.integers(0, 10_000), abstains=st.booleans())
def test_a_head_differs_from_none_of_its_own_decisions(seed: int, abstains: bool) -> None:
    rng = np.random.default_rng(seed)
    head, logits = make(rng, 4, abstains=abstains), draw(rng, 4, 50)
    found = find_affected(logits, head.apply(logits).decisions, head)
    assert (found.predictions, found.counts.affected) == (50, 0)
    assert (found.counts.share, found.counts.expected_cost, found.counts.mean_cost) == (0, 0, 0)


def test_a_rule_other_than_the_least_cost_may_prefer_the_dearer_decision() -> None:
    """By costs of 1 and 1, a risk of 0.3 is no reason to decide for the second class; by a cut-off of 0.2 it is."""
    rule = CutOffs(0.2)
    head = PostProcessingHead(1.0, [0, 0], [[0, 1], [1, 0]], [0.5, 0.5], ("no", "yes"), decision_rule=rule)
    logits = np.log([[0.7, 0.3], [0.4, 0.6]])
    found = find_affected(logits, [0, 0], head)
    assert found.new_decisions.tolist() == [1, 1]
    np.testing.assert_allclose(found.expected_costs, [0.3 - 0.7, 0.6 - 0.4], atol=1e-6)
    assert [change.expected_cost for change in found.counts.changes] == pytest.approx([-0.2], abs=1e-6)


def test_a_constant_in_the_costs_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    head = make(rng, 3, abstains=False)
    logits, logged = draw(rng, 3, 100), rng.integers(3, size=100)
    shifted = PostProcessingHead(
        head.temperature, head.bias, head.costs + 1e9, head.assumed_prevalence, head.class_names
    )
    costs = find_affected(logits, logged, head).expected_costs
    assert find_affected(logits, logged, shifted).expected_costs == pytest.approx(costs, abs=1e-6)


def test_a_tie_that_was_decided_otherwise_is_affected_and_costs_nothing() -> None:
    head = PostProcessingHead(1.0, [0, 0], [[0, 1], [1, 0]], [0.5, 0.5], ("a", "b"))
    found = find_affected([[0.0, 0.0]], [1], head)
    assert (found.rows.tolist(), found.expected_costs.tolist()) == ([0], [0.0])


def test_changes_come_most_costly_first() -> None:
    head = PostProcessingHead(1.0, [0, 0], [[0, 1], [10, 0]], [0.5, 0.5], ("benign", "malignant"))
    counts = find_affected([[9.0, 0.0], [9.0, 0.0], [0.0, 9.0]], [1, 1, 0], head).counts
    assert [(c.decision, c.new_decision, c.count) for c in counts.changes] == [(0, 1, 1), (1, 0, 2)]


@pytest.mark.parametrize(
    ("logits", "decisions", "field"),
    [
        ([[0.0, 1.0, 2.0]], [0], "logits"),
        ([[0.0, np.nan]], [0], "logits"),
        ([[0.0, 1.0]], [2], "decisions"),
        ([[0.0, 1.0]], [-1], "decisions"),
        ([[0.0, 1.0]], [0, 1], "decisions"),
    ],
)
def test_what_cannot_be_compared_is_refused(logits: list, decisions: list, field: str) -> None:
    head = PostProcessingHead(1.0, [0, 0], [[0, 1], [1, 0]], [0.5, 0.5], ("a", "b"))
    with pytest.raises(InvalidInputError) as refused:
        find_affected(logits, decisions, head)
    assert refused.value.field == field


@pytest.mark.parametrize("document", [{}, {"schema_version": 1, "predictions": 3, "changes": [3]}])
def test_a_document_of_something_else_is_refused(document: dict) -> None:
    with pytest.raises(InvalidInputError):
        AffectedCounts.from_document(document)


def test_counts_of_nothing() -> None:
    assert AffectedCounts() + AffectedCounts(2, (DecisionChange(0, 1, 1, 0.5),)) == AffectedCounts(
        2, (DecisionChange(0, 1, 1, 0.5),)
    )
