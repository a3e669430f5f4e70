"""The fitted ranker against scikit-learn, against a known truth, and as a file."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from lifelong_core.develop.fingerprints.distances.registry import METHODS
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.develop.knowledge.transfer_folder import read_transfer_folder
from lifelong_core.develop.ranking.features import DISTANCES, FEATURES
from lifelong_core.develop.ranking.fitting import FEWEST_DATASETS, _as_forest, fit_ranker
from lifelong_core.develop.ranking.gain_model import Forest
from lifelong_core.develop.ranking.ranker import FittedRanker, outcomes_digest
from lifelong_core.develop.ranking.source_distances import fill_distances
from lifelong_core.develop.ranking.standardised_gains import FEWEST_SOURCES
from lifelong_core.develop.transferability import weightedtau
from lifelong_core.values.errors import InvalidInputError
from tests.tools import transfer_folder
from tests.unit.develop.knowledge.examples import make_fingerprint
from tests.unit.develop.ranking.examples import SCENARIO, make_outcomes

fit = partial(fit_ranker, trees=30)


@pytest.fixture(scope="module")
def ranker() -> FittedRanker:
    return fit(make_outcomes())


def test_the_forest_predicts_what_scikit_learn_predicts_with_missing_values():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, len(FEATURES)))
    rows[rng.random(rows.shape) < 0.2] = np.nan
    rows[:, 0] = rng.normal(size=300)
    values = np.nan_to_num(rows[:, 0]) + (np.isnan(rows[:, 1]) * 2.0)
    trees = ExtraTreesRegressor(20, min_samples_leaf=3, random_state=0).fit(rows, values)
    new = rng.normal(size=(500, len(FEATURES)))
    new[rng.random(new.shape) < 0.3] = np.nan  # also in feature 0, which was never missing in the fit
    np.testing.assert_allclose(_as_forest(trees).predict(new), trees.predict(new), rtol=1e-12, atol=1e-12)


def test_a_forest_that_would_not_end_is_refused(ranker: FittedRanker):
    forest = ranker.scenarios[SCENARIO].forest
    inner = int(np.argmax(forest.features >= 0))
    left = forest.left.copy()
    left[inner] = inner
    with pytest.raises(InvalidInputError, match="no forest"):
        replace(forest, left=left)
    with pytest.raises(InvalidInputError, match="shape"):
        Forest(
            forest.roots,
            forest.features[:-1],
            *(getattr(forest, name) for name in ("thresholds", "left", "right", "missing_left", "values")),
            feature_count=forest.feature_count,
        )


def test_the_order_of_sources_and_the_gains_are_found(ranker: FittedRanker):
    fresh = make_outcomes(seed=5)
    predicted = ranker.scores(fresh, SCENARIO)
    truth = fresh.outcomes[0].mean(axis=(0, 1)) - fresh.baseline.mean(axis=(0, 1))
    legal = ~np.isnan(truth)
    assert np.isnan(predicted[~legal]).all()
    taus = [
        weightedtau(truth[legal[:, target], target], predicted[legal[:, target], target])
        for target in range(len(fresh.cards))
    ]
    assert np.mean(taus) > 0.7
    assert np.corrcoef(truth[legal], predicted[legal])[0, 1] > 0.8
    assert abs((truth - predicted)[legal].mean()) < 0.01


def test_without_an_effect_of_the_source_all_gains_are_the_level():
    model = fit(make_outcomes(effect=0.0)).scenarios[SCENARIO].gains["BA"]
    assert model.level == pytest.approx(0.05, abs=0.004)
    assert model.score_slope < 0.003


def test_intervals_cover_new_data_sets():
    covered: list[bool] = []
    for seed in range(3):
        ranker = fit(make_outcomes(20, seed=seed))
        model = ranker.scenarios[SCENARIO].gains["BA"]
        fresh = make_outcomes(20, seed=100 + seed)
        gain = (fresh.outcomes[0, 0].mean(axis=0) - fresh.baseline[0].mean(axis=0)).ravel()
        low, high = model.residual_limits(0.8, is_measured=False, baseline_known=True)
        expected = ranker.scores(fresh, SCENARIO).ravel()
        known = ~np.isnan(gain) & ~np.isnan(expected)
        covered += ((gain >= expected + low) & (gain <= expected + high))[known].tolist()
        assert high - low < 0.75 * np.ptp(gain[known])
    assert np.mean(covered) >= 0.8


def test_more_confidence_gives_wider_limits(ranker: FittedRanker):
    model = ranker.scenarios[SCENARIO].gains["AUROC"]
    limits = [
        model.residual_limits(confidence, is_measured=True, baseline_known=True)
        for confidence in (0.5, 0.8, 0.95)
    ]
    assert limits[2][0] <= limits[1][0] <= limits[0][0] <= 0 <= limits[0][1] <= limits[1][1] <= limits[2][1]


def test_a_ranker_survives_its_file(ranker: FittedRanker):
    content = ranker.to_bytes()
    again = FittedRanker.from_bytes(content)
    assert again == ranker
    assert again.to_bytes() == content
    assert again.digest == ranker.digest


@pytest.mark.parametrize(
    "damage", [lambda content: content[:-500], lambda _: b"", lambda _: b"PK\x05\x06" + bytes(18)]
)
def test_a_damaged_file_is_refused(ranker: FittedRanker, damage):
    with pytest.raises(InvalidInputError):
        FittedRanker.from_bytes(damage(ranker.to_bytes()))


def test_equal_outcomes_and_seeds_give_equal_rankers(ranker: FittedRanker):
    outcomes = make_outcomes()
    assert fit(outcomes) == ranker
    assert fit(outcomes, seed=1) != ranker
    assert ranker.outcomes_digest == outcomes_digest(outcomes)
    assert outcomes_digest(replace(outcomes, baseline=outcomes.baseline + 1e-3)) != ranker.outcomes_digest


def test_distances_of_fingerprints_reach_the_fit():
    knowledge = KnowledgeBase.from_outcomes(make_outcomes())
    prints = {task: (make_fingerprint(number, bins=100),) for number, task in enumerate(knowledge.tasks)}
    filled = fill_distances(KnowledgeBase(knowledge.entries, prints), DISTANCES)
    assert filled.methods == DISTANCES
    first, second = prints[knowledge.tasks[0]][0], prints[knowledge.tasks[5]][0]
    for number, method in enumerate(DISTANCES):
        assert filled.distances[number, 0, 5] == pytest.approx(METHODS[method].distance(first, second))
    published = fill_distances(knowledge, DISTANCES)
    np.testing.assert_array_equal(published.distances[0], knowledge.outcomes().distances[0])
    assert np.isnan(published.distances[1]).all()


def test_a_transfer_from_a_task_to_itself_teaches_nothing(ranker: FittedRanker):
    outcomes = make_outcomes()
    itself = outcomes.outcomes.copy()
    itself[..., np.arange(14), np.arange(14)] = 0.9
    assert fit(replace(outcomes, outcomes=itself)).scenarios == ranker.scenarios


def test_too_few_data_sets_are_refused():
    with pytest.raises(InvalidInputError, match=str(FEWEST_DATASETS)):
        fit(make_outcomes(2 * (FEWEST_DATASETS - 1)))
    fit(make_outcomes(2 * FEWEST_DATASETS))


@pytest.mark.parametrize("flaw", ["equal", "few sources", "no baseline", "few baselines", "infinite"])
def test_outcomes_that_teach_nothing_are_refused(flaw):
    outcomes = make_outcomes()
    values, baseline = outcomes.outcomes.copy(), outcomes.baseline.copy()
    if flaw == "equal":
        values[~np.isnan(values)] = 0.5
    elif flaw == "few sources":
        values[..., FEWEST_SOURCES - 1 :, :] = np.nan
    elif flaw == "infinite":
        values[0, 0, 0, 8, 3] = np.inf
    else:
        # The tasks of a data set lie side by side.
        baseline[..., 0 if flaw == "no baseline" else 2 * (FEWEST_DATASETS - 1) :] = np.nan
    with pytest.raises(InvalidInputError) as caught:
        fit(replace(outcomes, outcomes=values, baseline=baseline))
    assert caught.value.field == "outcomes"


def test_a_measure_of_too_few_data_sets_has_no_gains():
    outcomes = make_outcomes()
    baseline = outcomes.baseline.copy()
    baseline[0, :, 2 * (FEWEST_DATASETS - 1) :] = np.nan
    assert set(fit(replace(outcomes, baseline=baseline)).scenarios[SCENARIO].gains) == {"AUROC"}


def test_data_sets_whose_names_differ_in_case_are_the_same():
    outcomes = make_outcomes()
    cards = tuple(
        card.model_copy(update={"dataset": (card.dataset or "").upper()}) if place % 2 else card
        for place, card in enumerate(outcomes.cards)
    )
    again = replace(outcomes, cards=cards)
    assert fit(again).scenarios == fit(outcomes).scenarios
    assert cards[2].name not in KnowledgeBase.from_outcomes(again).possible_sources(cards[3].name)


def test_the_outcomes_of_the_target_do_not_reach_its_own_track_record(ranker: FittedRanker):
    outcomes = make_outcomes()
    records = ranker.scenarios[SCENARIO].records
    target = outcomes.cards[0]
    changed = outcomes.outcomes.copy()
    changed[..., 0] += np.linspace(0, 1, len(outcomes.cards))[:, np.newaxis][:, 0]
    changed[..., 1] -= 0.3 * np.arange(len(outcomes.cards))
    other = fit(replace(outcomes, outcomes=changed)).scenarios[SCENARIO].records
    names = outcomes.tasks[2:]
    np.testing.assert_array_equal(records.for_target(names, target), other.for_target(names, target))
    elsewhere = outcomes.cards[4]
    assert not np.array_equal(
        records.for_target(names[4:], elsewhere), other.for_target(names[4:], elsewhere)
    )


def test_measured_transfers_of_left_out_data_sets_are_ranked_better_than_by_size():
    """A third of the published data sets is left out, as targets and as sources."""
    outcomes = read_transfer_folder(transfer_folder())
    datasets = sorted({card.dataset or "" for card in outcomes.cards})
    held = set(datasets[::3])
    kept = np.flatnonzero([card.dataset not in held for card in outcomes.cards])
    left_out = np.flatnonzero([card.dataset in held for card in outcomes.cards])
    train = replace(
        outcomes,
        cards=tuple(outcomes.cards[place] for place in kept),
        outcomes=outcomes.outcomes[..., kept[:, np.newaxis], kept],
        baseline=outcomes.baseline[..., kept],
        distances=outcomes.distances[..., kept[:, np.newaxis], kept],
    )
    fitted = fit(train)
    means = outcomes.outcomes.mean(axis=2)
    smallest = -np.array([card.samples for card in outcomes.cards], dtype=float)
    learned, by_size = [], []
    for number, scenario in enumerate(outcomes.scenarios):
        predicted = fitted.scores(outcomes, scenario)
        for target in left_out:
            for measure in range(len(outcomes.measures)):
                truth = means[number, measure, :, target]
                known = ~np.isnan(truth)
                if known.sum() >= 4:
                    learned.append(weightedtau(truth[known], predicted[known, target]))
                    by_size.append(weightedtau(truth[known], smallest[known]))
    assert np.mean(learned) > max(0.13, np.mean(by_size))
