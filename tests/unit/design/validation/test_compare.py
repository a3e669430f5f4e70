import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from lifelong_core.design import ModelComparison, ModelOutputs, compare
from lifelong_core.design.validation.ranking import RankShares, rank_models
from lifelong_core.design.validation.values.intervals import Resamples
from lifelong_core.values.errors import InvalidInputError
from tests.unit.design.validations import metric, recommending, simulated

LABELS, PROBABILITIES = simulated(120, 3)
GOOD = ModelOutputs(probabilities=PROBABILITIES)
BAD = ModelOutputs(probabilities=simulated(120, 3, seed=5)[1])


def quick(recommendation, models, labels=LABELS, **given):
    return compare(recommendation, labels, models, **{"replicates": 50, **given})


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, np.inf, -np.inf]), min_size=1, max_size=7))
def test_ranks_share_places_as_those_of_scipy(goodness):
    found = RankShares.of(np.array(goodness))
    np.testing.assert_array_equal(found.ranks, stats.rankdata(-np.array(goodness), method="average"))
    np.testing.assert_array_equal(found.first, stats.rankdata(-np.array(goodness), method="min"))


@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 1.0, 2.0, np.nan]), min_size=4, max_size=4), min_size=1, max_size=6
    )
)
def test_every_place_is_given_away_once(draws):
    shares = RankShares.of(np.array(draws)).shares()
    np.testing.assert_allclose(shares.sum(axis=0), 1)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_allclose(shares @ np.arange(1, 5), RankShares.of(np.array(draws)).ranks.mean(axis=0))


def test_what_is_undefined_comes_last_even_behind_the_infinitely_bad():
    assert RankShares.of(np.array([np.nan, -np.inf, 0.0, np.nan])).ranks.tolist() == [3.5, 2, 1, 3.5]


def test_rank_intervals_hold_the_stated_share_of_the_draws():
    draws = np.stack([np.zeros(100), np.where(np.arange(100) < 20, 1.0, -1.0)], axis=1)
    first, second = rank_models(["a", "b"], [0, -1], np.array([0.0, -1.0]), draws, level=0.5)
    assert (first.model, first.best, first.low, first.high) == ("a", 0.8, 1, 1)
    assert rank_models(["a", "b"], [0, -1], np.array([0.0, -1.0]), draws, level=0.9)[0].high == 2
    assert (second.mean_rank, second.shares) == (pytest.approx(1.8), pytest.approx((0.2, 0.8)))


def test_twins_tie_in_every_draw():
    acronyms = ("BA", "AUROC", "KCE", "ECE_KDE", "NLL", "TCE")
    found = quick(recommending(*acronyms), {"a": GOOD, "b": GOOD}, replicates=20)
    assert len(found.rankings) == len(acronyms)
    for ranking in (*found.rankings, found.rank_then_mean):
        assert [(one.rank, one.mean_rank, one.best) for one in ranking.models] == [(1.5, 1.5, 0.5)] * 2
        assert [one.shares for one in ranking.models] == [(0.5, 0.5)] * 2
        assert [one.model for one in ranking.models] == ["a", "b"]


def test_the_better_model_comes_first_whichever_values_are_better():
    acronyms = ("BA", "EC", "NLL", "AUROC", "LR+", "ECE")
    found = quick(recommending(*acronyms), {"bad": BAD, "good": GOOD})
    for acronym, ranking in zip(acronyms, found.rankings, strict=True):
        assert [one.model for one in ranking.models] == ["good", "bad"], acronym
        assert ranking.models[0].best > 0.95, acronym
        values = {name: result.estimate(acronym) for name, result in found.results.items()}
        if acronym == "ECE":
            assert ranking.basis == "excess"
            values = {name: result.value(acronym).calibrated.excess for name, result in found.results.items()}
        assert {one.model: one.score for one in ranking.models} == values


@pytest.mark.parametrize("acronym", ["ECE", "CWCE"])
def test_the_error_by_chance_does_not_decide(acronym):
    """One prediction for all, off by .045, has a smaller error than calibrated ones, but a larger excess."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet([1, 1, 1], 300)
    labels = (rng.random((300, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    shares = np.bincount(labels, minlength=3) / 300
    likeliest = shares.argmax()
    off = np.where(np.arange(3) == likeliest, 0.045, -0.0225)
    models = {
        "constant": ModelOutputs(probabilities=np.tile(shares + off, (300, 1))),
        "true": ModelOutputs(probabilities=truth),
    }
    found = quick(recommending(acronym), models, labels)
    ranking = found.rankings[0]
    assert found.results["constant"].estimate(acronym) < found.results["true"].estimate(acronym)
    assert ranking.models[0].model == "true"
    assert ranking.basis == "excess"


def test_a_comparison_is_a_document():
    found = quick(recommending("ECE"), {"bad": BAD, "good": GOOD}, replicates=20)
    assert type(found).from_json(found.to_json()) == found


@pytest.mark.parametrize("groups", [None, np.arange(120) // 4])
def test_models_are_judged_on_the_same_draws(groups):
    """One that is right on three cases more is never worse on the same draw, but often on another one."""
    decisions = PROBABILITIES.argmax(axis=1)
    better = decisions.copy()
    resolved = np.flatnonzero(decisions != LABELS)[:3]
    better[resolved] = LABELS[resolved]
    models = {"plain": ModelOutputs(decisions=decisions), "corrected": ModelOutputs(decisions=better)}
    found = quick(recommending("AC"), models, groups=groups, replicates=300, rng=8)
    unit = np.arange(120) if groups is None else groups
    times = Resamples.draw(unit, replicates=300, seed=8).times[1:301][:, unit]
    drawn = times[:, resolved].any(axis=1)
    first = found.rankings[0].models[0]
    assert (first.model, first.best) == ("corrected", pytest.approx(1 - (1 - drawn.mean()) / 2))


def test_validation_alone_says_the_same():
    from lifelong_core.design import validate

    recommendation = recommending("BA", metric("TNR", parameters={"target": ("TPR", 0.8)}))
    found = quick(recommendation, {"good": GOOD, "bad": BAD}, rng=3)
    assert found.results["bad"] == validate(
        recommendation, LABELS, probabilities=BAD.probabilities, name="bad", replicates=50, rng=3
    )


def test_rank_then_mean_and_mean_then_rank_may_disagree():
    """A little better by two metrics and far worse by one: more wins, but less on average."""
    labels = np.repeat([0, 1], 100)
    wins = np.where(np.arange(200) % 100 < 90, labels, 1 - labels)
    other = np.where(np.arange(200) % 100 < 89, labels, 1 - labels)

    def scores(decisions, confidence):
        share = np.where(decisions == 1, confidence, 1 - confidence)
        return ModelOutputs(probabilities=np.stack([1 - share, share], axis=1))

    models = {"wins": scores(wins, 0.501), "calibrated": scores(other, 0.89)}
    found = quick(recommending("BA", "F_beta", "BS", number_of_classes=2), models, labels)
    assert [one.model for one in found.rank_then_mean.models] == ["wins", "calibrated"]
    assert found.rank_then_mean.models[0].score == pytest.approx(4 / 3)
    assert [one.model for one in found.mean_then_rank.models] == ["calibrated", "wins"]
    scored = found.mean_then_rank.models[0]
    brier = found.results["calibrated"].estimate("BS")
    assert scored.score == pytest.approx((0.89 + 0.89 + 1 - brier / 2) / 3)


def test_what_has_no_scale_counts_only_by_its_rank():
    costs = metric("EC", parameters={"costs": ((0.0, 1.0, 1.0), (5.0, 0.0, 1.0), (5.0, 1.0, 0.0))})
    found = quick(recommending(costs, "NLL", "AUROC"), {"good": GOOD, "bad": BAD})
    assert found.rank_then_mean.labels == ("EC", "NLL", "AUROC")
    assert found.mean_then_rank.labels == ("EC", "AUROC")
    assert "no scale" in found.mean_then_rank.left_out["NLL"]
    best = found.mean_then_rank.models[0]
    expected = (1 - found.results["good"].estimate("EC") / 5 + found.results["good"].estimate("AUROC")) / 2
    assert (best.model, best.score) == ("good", pytest.approx(expected))


def test_an_undefined_metric_ranks_nobody():
    labels = np.where(LABELS == 2, 1, LABELS)
    found = quick(recommending("BA", "AC"), {"good": GOOD, "bad": BAD}, labels)
    assert found.rankings[0].models == ()
    assert found.rankings[0].reason == "undefined for every model: no reference sample of class 2"
    assert found.rank_then_mean.labels == found.mean_then_rank.labels == ("AC",)
    assert set(found.rank_then_mean.left_out) == {"BA"}
    nothing = quick(recommending("BA"), {"good": GOOD, "bad": BAD}, labels)
    assert nothing.rank_then_mean.models == nothing.mean_then_rank.models == ()


def test_a_model_without_a_value_comes_last():
    never = ModelOutputs(decisions=np.where(LABELS == 0, 0, 1))
    sometimes = ModelOutputs(decisions=np.where(np.arange(120) < 80, 0, 2))
    target = metric("PPV", target_class=2)
    found = quick(recommending(target), {"never": never, "sometimes": sometimes})
    assert [(one.model, one.score is None) for one in found.rankings[0].models] == [
        ("sometimes", False),
        ("never", True),
    ]


def test_warnings_are_said_once_or_with_the_model():
    decisions = PROBABILITIES.argmax(axis=1)
    decisions[0] = -1
    models = {"good": GOOD, "silent": ModelOutputs(decisions=decisions)}
    warnings = quick(recommending("AC"), models).warnings
    assert sum("class mix" in warning for warning in warnings) == 1
    assert any(warning.startswith("silent: 1 of 120 samples have no valid output") for warning in warnings)


def test_it_is_a_document_and_the_same_for_the_same_seed():
    models = {"good": GOOD, "bad": BAD, "twin": GOOD}
    first, second = (quick(recommending("BA", "KCE"), models, rng=1) for _ in range(2))
    assert ModelComparison.from_json(first.to_json()) == first == second
    assert list(first.results) == ["good", "bad", "twin"]


def test_one_model_is_no_comparison_and_faults_name_the_model():
    with pytest.raises(InvalidInputError) as error:
        quick(recommending("BA"), {"good": GOOD})
    assert error.value.field == "models"
    with pytest.raises(InvalidInputError) as error:
        quick(recommending("BA"), {"good": GOOD, "short": ModelOutputs(decisions=[0, 1])})
    assert error.value.field == "models.short.decisions"


def test_temperature_mends_the_probabilities_of_a_real_network_and_not_its_decisions(shared_logits):
    task = shared_logits("lapgyn4_surgical_actions")
    held_back = task.calibration
    temperatures = np.linspace(0.5, 4, 36)
    surprises = [
        -special.log_softmax(held_back.logits / one, axis=1)[
            np.arange(held_back.labels.size), held_back.labels
        ].mean()
        for one in temperatures
    ]
    best = temperatures[np.argmin(surprises)]
    rows = np.random.default_rng(0).choice(len(task.deployment.labels), 2000, replace=False)
    logits, labels = task.deployment.logits[rows], task.deployment.labels[rows]
    models = {"raw": ModelOutputs(logits=logits), "scaled": ModelOutputs(logits=logits / best)}
    recommendation = recommending("BA", "NLL", "ECE", number_of_classes=8)
    found = compare(recommendation, labels, models, replicates=200)
    decided, surprised, calibrated = found.rankings
    assert [one.best for one in decided.models] == [0.5, 0.5]
    assert [(one.models[0].model, one.models[0].best) for one in (surprised, calibrated)] == [
        ("scaled", 1),
        ("scaled", 1),
    ]
    assert found.mean_then_rank.labels == ("BA", "ECE")
    assert found.rank_then_mean.models[0].model == "scaled"


def test_cut_offs_of_other_data_are_for_all_models_or_for_none():
    other = (LABELS, PROBABILITIES)
    models = {"good": ModelOutputs(probabilities=PROBABILITIES, cut_off_data=other), "bad": BAD}
    with pytest.raises(InvalidInputError, match="some of the models only"):
        quick(recommending("BA"), models)


def test_a_draw_without_a_value_of_one_metric_still_tells_the_models_apart_by_the_others():
    """Most draws of two samples of each of eight classes miss a class, and BA is undefined there."""
    labels = np.repeat(np.arange(8), 2)
    models = {"blind": ModelOutputs(decisions=np.zeros(16, int)), "right": ModelOutputs(decisions=labels)}
    found = quick(recommending("BA", "ER", number_of_classes=8), models, labels, replicates=200)
    assert found.rankings[0].replicates < 100
    for overall in (found.rank_then_mean, found.mean_then_rank):
        assert (overall.replicates, overall.models[0].model) == (200, "right")
        assert overall.models[0].best > 0.95


def test_a_metric_that_no_draw_defines_ranks_nobody():
    labels = np.arange(30)
    models = {"blind": ModelOutputs(decisions=np.zeros(30, int)), "right": ModelOutputs(decisions=labels)}
    found = quick(recommending("BA", "AC", number_of_classes=30), models, labels)
    assert found.rankings[0].reason == "undefined in every resampled data set"
    assert found.mean_then_rank.left_out == {"BA": "it is undefined in every resampled data set"}
