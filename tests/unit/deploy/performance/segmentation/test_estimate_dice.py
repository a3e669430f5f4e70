"""Estimates of Dice agree with the equations, and behave at their limits."""

import dataclasses
import json

import numpy as np
import pytest

from lifelong_core.deploy.performance.segmentation import (
    DICE_METHODS,
    DiceEstimate,
    SegmentationCase,
    estimate_dice,
)
from lifelong_core.deploy.performance.segmentation.result import CODES
from lifelong_core.values.errors import InvalidInputError
from tests.unit.deploy.performance.segmentation import transcription
from tests.unit.deploy.performance.segmentation.examples import draw_case, draw_cases, real_dice

FEW = {"replicates": 2}


@pytest.mark.parametrize("method", DICE_METHODS)
def test_two_classes_as_in_the_equations(method):
    calibration = draw_cases(4, 1, gain=2.0, shape=(14, 12), radius=4)
    maps = draw_cases(3, 2, gain=2.0, shape=(12, 16), noise=1.2, radius=4)
    found = estimate_dice(calibration, maps, method=method, **FEW)
    for k in (0, 1):
        expected = transcription.estimate(method, calibration, maps, k)
        assert found.classes[k].value == pytest.approx(expected, abs=1e-4)
        assert found.classes[k].calibration_dice == pytest.approx(transcription.dice(calibration, k))
    assert found.foreground.value == found.classes[1].value


@pytest.mark.parametrize("method", ["AC", "TS", "DoC", "ATC", "TS-ATC", "CS-DoC"])
def test_three_classes_in_volumes_as_in_the_equations(method):
    calibration = draw_cases(3, 1, classes=3, gain=1.5, shape=(8, 7, 6), radius=3)
    maps = draw_cases(2, 2, classes=3, gain=1.5, shape=(6, 9, 7), radius=3)
    found = estimate_dice(calibration, maps, method=method, **FEW)
    for k in range(3):
        expected = transcription.estimate(method, calibration, maps, k)
        assert found.classes[k].value == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("method", ["CS-TS", "CS-ATC", "CS-TS-ATC"])
def test_on_the_calibration_cases_the_class_specific_estimate_is_their_dice(method):
    """Eq. 7 with the fitted parameters matches the Dice of every foreground class at once."""
    cases = draw_cases(6, 3, classes=4, gain=1.5, shape=(32, 32))
    found = estimate_dice(cases, cases, method=method, **FEW)
    for k in range(1, 4):
        assert found.classes[k].value == pytest.approx(found.classes[k].calibration_dice, abs=2e-3)


@pytest.mark.parametrize("method", DICE_METHODS)
def test_probabilities_give_what_their_logits_give(method):
    cases, maps = draw_cases(4, 1, gain=2.0), draw_cases(3, 2)
    expected = estimate_dice(cases, maps, method=method, **FEW)

    def as_probabilities(case, dtype):
        scores = transcription.softmax(case.scores.astype(np.float64)).astype(dtype)
        return dataclasses.replace(case, scores=scores, is_logits=False)

    for dtype, tolerance in ((np.float64, 1e-5), (np.float32, 1e-5), (np.float16, 5e-3)):
        given = [[as_probabilities(case, dtype) for case in one] for one in (cases, maps)]
        found = estimate_dice(*given, method=method, **FEW)
        assert found.classes[1].value == pytest.approx(expected.classes[1].value, abs=tolerance)


def test_the_grid_of_thresholds_is_fine_enough():
    """The exact threshold of eq. 5 leaves as many pixels of the calibration cases above it as are right."""
    calibration, maps = draw_cases(8, 1, gain=2.0), draw_cases(6, 2, gain=1.5)
    flats = [transcription.flat(case) for case in calibration]
    gaps = np.sort(np.concatenate([np.abs(logits[1] - logits[0]) for logits, _, _ in flats]))[::-1]
    right = sum(int((labels == predicted).sum()) for _, labels, predicted in flats)
    expected = transcription.soft_dice(maps, transcription.above([gaps[right]] * 2, np.ones(2)), 1)
    found = estimate_dice(calibration, maps, method="ATC", **FEW).classes[1].value
    assert found == pytest.approx(expected, abs=2e-3)


def test_blocks_change_nothing(monkeypatch):
    cases, maps = draw_cases(3, 1, classes=3), draw_cases(3, 2, classes=3)
    whole = estimate_dice(cases, maps, method="CS-TS-ATC")
    monkeypatch.setattr("lifelong_core.deploy.performance.segmentation.cases.BLOCK_PIXELS", 7)
    assert estimate_dice(cases, maps, method="CS-TS-ATC").classes[2].value == pytest.approx(
        whole.classes[2].value, abs=1e-6
    )


@pytest.mark.parametrize("method", DICE_METHODS)
def test_a_perfect_segmentation_has_dice_1(method):
    cases = draw_cases(12, 1, signal=40.0, noise=0.1)
    found = estimate_dice(cases, cases[:5], method=method)
    assert found.classes[1].value == pytest.approx(1, abs=1e-6)
    assert found.classes[1].low > 0.999
    assert found.classes[1].calibration_dice == 1


def test_dice_is_undefined_where_a_class_is_neither_predicted_nor_there():
    """Half of the calibration cases without a predicted pixel contain the class: half of such maps count, as 0."""
    clear = {"signal": 40.0, "noise": 0.1}
    whole = draw_cases(10, 1, **clear)
    absent = draw_cases(2, 2, empty=(1,), **clear)
    missed = [
        dataclasses.replace(case, labels=np.pad(np.ones((2, 2), int), ((0, 22), (0, 18))))
        for case in draw_cases(2, 3, empty=(1,), **clear)
    ]
    found = estimate_dice([*whole, *absent, *missed], [*whole[:6], *absent, *absent], method="CS-TS").classes[
        1
    ]
    assert (found.calibration_cases, found.undefined_calibration_cases) == (12, 2)
    assert found.calibration_dice == pytest.approx(10 / 12)
    assert (found.cases, found.unpredicted_cases, found.missed_share) == (6, 4, 0.5)
    soft = estimate_dice([*whole, *absent, *missed], whole[:6], method="CS-TS").classes[1].value
    assert found.value == pytest.approx(soft * 6 / 8)


def test_maps_without_a_predicted_pixel_count_as_missed_where_nothing_is_known():
    cases = draw_cases(12, 1, signal=40.0, noise=0.1)
    empty = draw_cases(4, 2, signal=40.0, noise=0.1, empty=(1,))
    found = estimate_dice(cases, [*cases[:4], *empty], method="CS-ATC")
    assert found.classes[1].value == pytest.approx(0.5)
    assert found.classes[1].missed_share is None
    assert [one.code for one in found.warnings] == ["few_cases", "unpredicted_cases"]
    assert {one.code for one in found.warnings} < set(CODES)
    assert "no calibration case is like them" in found.warnings[-1].text


@pytest.mark.parametrize("method", ["CS-TS", "CS-DoC", "CS-ATC", "CS-TS-ATC"])
def test_a_class_that_is_never_predicted_has_the_parameter_of_all_pixels(method):
    cases = draw_cases(6, 1, classes=3, empty=(2,), shifted=(0, 0, -30), gain=2.0)
    maps = draw_cases(6, 2, classes=3, gain=2.0)
    found = estimate_dice(cases, maps, method=method, **FEW)
    assert [one.text for one in found.warnings if one.code == "class_never_predicted"] == [
        "Class 2 is never predicted in the calibration cases: it has the parameter of all pixels."
    ]
    assert 0 < found.classes[2].value < 1
    agnostic = {"CS-TS": "TS", "CS-DoC": "DoC", "CS-ATC": "ATC"}.get(method)
    if agnostic is not None:
        everywhere = estimate_dice(cases, maps, method=agnostic, **FEW)
        assert found.classes[2].parameter == pytest.approx(everywhere.classes[2].parameter)


def test_one_case_has_an_estimate_without_an_interval():
    cases = draw_cases(5, 1)
    for calibration, maps in ((cases[:1], cases), (cases, cases[:1])):
        found = estimate_dice(calibration, maps)
        assert found.classes[1].value is not None
        assert found.classes[1].low is None
        assert any("there is no interval" in one.text for one in found.warnings)
        assert json.loads(json.dumps(found.to_document()))["foreground"][1:] == [None, None]


def test_a_class_without_any_map_has_no_value():
    cases = draw_cases(5, 1, classes=3, empty=(2,), shifted=(0, 0, -30))
    found = estimate_dice(cases, cases, method="CS-TS", **FEW)
    assert found.classes[2].value is None
    assert found.foreground.value == found.classes[1].value


def test_dependent_cases_widen_the_interval():
    """The confidence of the model differs between patients; each has five cases."""
    rng = np.random.default_rng(0)
    gains = np.linspace(0.5, 3, 6)
    cases = [
        draw_case(rng, gain=gain, group=str(patient)) for patient, gain in enumerate(gains) for _ in range(5)
    ]
    alone = [dataclasses.replace(case, group=None) for case in cases]
    found = [
        estimate_dice(calibration, maps, method="CS-DoC").foreground
        for calibration, maps in ((alone, alone), (cases, alone), (alone, cases))
    ]
    neither, calibration_only, maps_only = (one.high - one.low for one in found)
    assert calibration_only > 1.1 * neither
    assert maps_only > 1.1 * neither


def test_the_same_seed_gives_the_same_estimate():
    cases, maps = draw_cases(8, 1), draw_cases(8, 2)
    assert estimate_dice(cases, maps, rng=3) == estimate_dice(cases, maps, rng=3)
    assert estimate_dice(cases, maps, rng=3) != estimate_dice(cases, maps, rng=4)


def test_a_document_holds_the_whole_estimate():
    found = estimate_dice(draw_cases(3, 1, classes=3), draw_cases(3, 2, classes=3), method="CS-DoC", **FEW)
    document = json.loads(json.dumps(found.to_document()))
    assert DiceEstimate.from_document(document) == found
    with pytest.raises(InvalidInputError, match="another form"):
        DiceEstimate.from_document({**document, "classes": [{"value": 1}]})
    with pytest.raises(InvalidInputError, match="missing"):
        DiceEstimate.from_document({"schema_version": 1})


def good(**changed) -> SegmentationCase:
    given = {"scores": np.full((2, 3, 4), 0.5, np.float32), "labels": np.zeros((3, 4), int), "name": "a.npz"}
    return SegmentationCase(**{**given, **changed})


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"scores": np.full((2, 3, 4), 0.4, np.float32)}, "sum to 0.8"),
        ({"scores": np.full((2, 3, 4), np.nan, np.float32)}, "not a finite float32"),
        ({"scores": np.stack([np.full((3, 4), 1.5), np.full((3, 4), -0.5)])}, "a negative value"),
        ({"scores": np.full((2, 3, 4), 1e300), "is_logits": True}, "not a finite float32"),
        ({"scores": np.ones((2, 3, 4), np.int64)}, "floating-point"),
        ({"scores": np.full(2, 0.5)}, r"shape \(C, ...\)"),
        ({"scores": np.ones((1, 3, 4))}, r"shape \(C, ...\)"),
        ({"scores": np.zeros((2, 0, 4)), "labels": np.zeros((0, 4), int)}, "at least one pixel"),
        ({"labels": np.full((3, 4), 2)}, r"classes in 0\.\.1"),
        ({"labels": np.full((3, 4), -1)}, r"classes in 0\.\.1"),
        ({"labels": np.zeros((4, 3), int)}, r"shape \(3, 4\)"),
        ({"labels": np.zeros((3, 4))}, "whole numbers"),
        ({"labels": None}, "labels are missing"),
        ({"scores": np.full((3, 3, 4), 1 / 3)}, "expected 2 classes"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_an_illegal_case_is_named(changed, told):
    with pytest.raises(InvalidInputError, match=told) as refused:
        estimate_dice([good(name="b.npz"), good(**changed)], [good()])
    assert "a.npz" in refused.value.message


def test_illegal_arguments_are_refused():
    cases = [good(), good()]
    for options, field in (
        ({"method": "VS"}, "method"),
        ({"background": 2}, "background"),
        ({"confidence": 1.0}, "confidence"),
        ({"replicates": 1}, "replicates"),
    ):
        with pytest.raises(InvalidInputError) as refused:
            estimate_dice(cases, cases, **options)
        assert refused.value.field == field
    for given, field in ((([], cases), "calibration"), ((cases, []), "maps")):
        with pytest.raises(InvalidInputError, match="there is no case") as refused:
            estimate_dice(*given)
        assert refused.value.field == field
    with pytest.raises(InvalidInputError, match="expected 2 classes as in the calibration"):
        estimate_dice(cases, [good(scores=np.full((3, 3, 4), 1 / 3), labels=None)])
    with pytest.raises(InvalidInputError, match="read twice"):
        estimate_dice(iter(cases), cases, method="TS-ATC")


def test_intervals_cover_the_mean_of_the_population():
    """Nominal 90 %; the standard error of 40 repetitions is 5 %. The population mean is that of all cases."""
    pool = draw_cases(400, 5, shape=(16, 16), radius=5.0, noise=1.3, gain=1.5)
    truth = np.mean([real_dice(case, 1) for case in pool])
    rng, covered = np.random.default_rng(0), 0
    for repetition in range(40):
        chosen = [pool[i] for i in rng.choice(400, 40, replace=False)]
        found = estimate_dice(
            chosen[:15], chosen[15:], confidence=0.9, replicates=50, rng=repetition
        ).classes[1]
        covered += found.low <= truth <= found.high
    assert 0.78 <= covered / 40 <= 0.99
