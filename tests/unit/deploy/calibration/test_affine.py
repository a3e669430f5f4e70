import numpy as np
import pytest
from scipy import optimize
from scipy.special import logsumexp, softmax

from lifelong_core.deploy import AffineCalibration, fit_affine
from lifelong_core.values.errors import InvalidInputError, UnidentifiableError

TASKS = ("lapgyn4_surgical_actions", "hyperkvasir_therapeutic_interventions", "cifar10_resnet50")


def loss(logits, labels, weights, temperature, bias):
    """The weighted cross entropy of thesis Def. 6.8, written down anew."""
    logits = logits.astype(float) - logits.astype(float).mean(axis=1, keepdims=True)
    scores = logits / temperature + bias
    own = scores[np.arange(labels.size), labels]
    return float(weights @ (logsumexp(scores, axis=1) - own) / weights.sum())


def reference_loss(logits, labels, weights, *, per_class):
    """What scipy's quasi-Newton method reaches with the analytic gradient."""
    classes = logits.shape[1]
    temperatures = classes if per_class else 1
    rows = logits.astype(float) - logits.astype(float).mean(axis=1, keepdims=True)
    truth = np.eye(classes)[labels]
    shares = weights / weights.sum()

    def objective(parameters):
        scores = rows * parameters[:temperatures] + parameters[temperatures:]
        normaliser = logsumexp(scores, axis=1)
        residuals = (np.exp(scores - normaliser[:, None]) - truth) * shares[:, None]
        slopes = (residuals * rows).sum(axis=0)
        value = shares @ (normaliser - (scores * truth).sum(axis=1))
        return value, np.r_[slopes if per_class else slopes.sum(), residuals.sum(axis=0)]

    start = np.r_[np.ones(temperatures), np.zeros(classes)]
    options = {"maxiter": 3000, "maxfun": 10000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 30}
    return optimize.minimize(objective, start, jac=True, method="L-BFGS-B", options=options).fun


def target(name, classes, present):
    if name == "same":
        return None
    if name == "skewed":
        return np.random.default_rng(classes).dirichlet(np.ones(classes))
    return np.r_[0.0, np.full(classes - 1, 1 / (classes - 1))]


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("prevalence", ["same", "skewed", "without the first class"])
@pytest.mark.parametrize("task", TASKS)
def test_no_worse_than_the_reference_on_real_logits(shared_logits, task, prevalence, per_class):
    data = shared_logits(task).calibration
    wanted = target(prevalence, data.classes, data.counts)
    weights = (np.ones(data.classes) if wanted is None else wanted / data.prevalence)[data.labels]
    fitted = fit_affine(data.logits, data.labels, target_prevalence=wanted, per_class_temperature=per_class)
    reached = loss(data.logits, data.labels, weights, fitted.temperature, fitted.bias)
    assert reached <= reference_loss(data.logits, data.labels, weights, per_class=per_class) + 1e-9
    assert fitted.bias.mean() == pytest.approx(0, abs=1e-9)


def test_no_worse_than_the_reference_with_a_hundred_classes(shared_logits):
    data = shared_logits("cifar100_resnet20").calibration.select(np.arange(1500))
    fitted = fit_affine(data.logits, data.labels)
    weights = np.ones(data.samples)
    reached = loss(data.logits, data.labels, weights, fitted.temperature, fitted.bias)
    assert reached <= reference_loss(data.logits, data.labels, weights, per_class=False) + 1e-9


def test_temperature_scaling_has_no_bias_and_the_best_temperature(shared_logits):
    data = shared_logits("lapgyn4_surgical_actions").calibration
    fitted = fit_affine(data.logits, data.labels, bias=False)
    assert fitted.bias.tolist() == [0.0] * data.classes

    def along(log_temperature):
        return loss(data.logits, data.labels, np.ones(data.samples), np.exp(log_temperature), 0.0)

    best = optimize.minimize_scalar(along, bounds=(-2, 3), method="bounded", options={"xatol": 1e-9})
    assert fitted.temperature == pytest.approx(np.exp(best.x), rel=1e-5)


def test_weighting_is_prior_correction_when_the_model_is_well_specified(population):
    """Then the optimal bias moves by the log of the importance weights, and the temperature stays."""
    three = population(3)
    counts = np.array([20_000, 20_000, 20_000])
    data = three.draw(counts, np.random.default_rng(0))
    wanted = np.array([0.7, 0.2, 0.1])
    fitted = fit_affine(data.logits, data.labels, target_prevalence=wanted)
    assert fitted.temperature == pytest.approx(1 / three.separation, rel=0.03)
    assert fitted.bias == pytest.approx(np.log(wanted) - np.log(wanted).mean(), abs=0.05)
    rows = three.window(wanted, 1000, np.random.default_rng(1))
    assert fitted.probabilities(rows) == pytest.approx(three.posterior(rows, wanted), abs=0.02)


def test_weights_equal_repeated_samples(population):
    data = population(2).draw([60, 40], np.random.default_rng(0))
    repeated = np.repeat(np.arange(100), np.where(data.labels == 0, 1, 3))
    weighted = fit_affine(data.logits, data.labels, target_prevalence=[60 / 180, 120 / 180])
    again = fit_affine(data.logits[repeated], data.labels[repeated])
    assert weighted.temperature == pytest.approx(again.temperature, rel=1e-6)
    assert weighted.bias == pytest.approx(again.bias, abs=1e-6)


def test_a_constant_per_row_changes_nothing(population):
    data = population(4).draw([50] * 4, np.random.default_rng(0))
    moved = data.logits + np.float32(2) ** np.arange(-3, 5)[np.arange(200) % 8][:, None].astype(np.float32)
    for per_class in (False, True):
        one = fit_affine(data.logits, data.labels, per_class_temperature=per_class)
        other = fit_affine(moved, data.labels, per_class_temperature=per_class)
        assert one.temperature == pytest.approx(other.temperature, rel=1e-4)
        assert one.probabilities(data.logits) == pytest.approx(one.probabilities(moved), abs=1e-5)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_the_temperature_follows_the_scale_of_the_logits(population, scale):
    data = population(3).draw([80] * 3, np.random.default_rng(0))
    plain = fit_affine(data.logits, data.labels)
    scaled = fit_affine(data.logits * np.float32(scale), data.labels)
    assert scaled.temperature == pytest.approx(scale * plain.temperature, rel=1e-4)
    assert scaled.bias == pytest.approx(plain.bias, abs=1e-4)


def test_an_outlier_does_not_spoil_the_bounds(population):
    data = population(3).draw([80] * 3, np.random.default_rng(0))
    logits = data.logits.copy()
    logits[0] *= 1e4
    fitted = fit_affine(logits, data.labels, per_class_temperature=True)
    assert np.isfinite(fitted.probabilities(logits)).all()
    weights = np.ones(data.samples)
    reached = loss(logits, data.labels, weights, fitted.temperature, fitted.bias)
    assert reached <= reference_loss(logits, data.labels, weights, per_class=True) + 1e-9


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", ["separable", "constant", "inverted", "one sample", "extreme"])
def test_data_without_an_optimum_stay_within_the_bounds(kind, bias, per_class):
    labels = np.array([0] if kind == "one sample" else [0, 1, 2] * 20)
    logits = {
        "separable": np.eye(3)[labels] * 7,
        "constant": np.full((labels.size, 3), 3.0),
        "inverted": -np.eye(3)[labels],
        "one sample": np.array([[1.0, 2.0, 3.0]]),
        "extreme": np.eye(3)[(labels + np.arange(labels.size) // 50) % 3] * 1e4,
    }[kind]
    fitted = fit_affine(logits, labels, bias=bias, per_class_temperature=per_class)
    probabilities = fitted.probabilities(logits)
    assert np.isfinite(fitted.bias).all()
    assert np.isfinite(probabilities).all()
    assert probabilities.sum(axis=1) == pytest.approx(1)
    if kind == "separable":
        assert (probabilities.argmax(axis=1) == labels).all()


def test_a_class_of_target_prevalence_zero_vanishes(population):
    data = population(3).draw([50] * 3, np.random.default_rng(0))
    fitted = fit_affine(data.logits, data.labels, target_prevalence=[0.5, 0.5, 0.0])
    assert fitted.probabilities(data.logits)[:, 2].max() == 0
    pair = data.select(data.labels < 2)
    alone = fit_affine(pair.logits[:, :2], pair.labels)
    assert fitted.temperature == pytest.approx(alone.temperature, rel=1e-6)


def test_a_class_without_samples_vanishes_unless_it_is_wanted(population):
    data = population(3).draw([50, 50, 0], np.random.default_rng(0))
    assert fit_affine(data.logits, data.labels).probabilities(data.logits)[:, 2].max() == 0
    with pytest.raises(UnidentifiableError, match="class 2") as caught:
        fit_affine(data.logits, data.labels, target_prevalence=[0.4, 0.4, 0.2])
    assert caught.value.field == "target_prevalence"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"temperature": 0.0, "bias": [0, 0]}, "temperature"),
        ({"temperature": [1.0, -1.0], "bias": [0, 0]}, "temperature"),
        ({"temperature": [1.0, 1.0, 1.0], "bias": [0, 0]}, "temperature"),
        ({"temperature": np.inf, "bias": [0, 0]}, "temperature"),
        ({"temperature": 1.0, "bias": [0, np.nan]}, "bias"),
        ({"temperature": 1.0, "bias": 0.0}, "bias"),
        ({"temperature": "warm", "bias": [0, 0]}, "temperature"),
    ],
)
def test_illegal_parameters_are_named(arguments, field):
    with pytest.raises(InvalidInputError) as caught:
        AffineCalibration(**arguments)
    assert caught.value.field == field


def test_calibrations_compare_by_value_and_are_frozen():
    one, same = AffineCalibration([1.0, 2.0], [0.5, -0.5]), AffineCalibration([1.0, 2.0], [0.5, -0.5])
    assert one == same
    assert hash(one) == hash(same)
    assert one != AffineCalibration([1.0, 2.0], [0.5, -0.25])
    assert one != "calibration"
    with pytest.raises(ValueError, match="read-only"):
        one.bias[0] = 1


def test_probabilities_are_the_softmax_of_the_scores(shared_logits):
    data = shared_logits(TASKS[0]).calibration
    fitted = fit_affine(data.logits, data.labels, per_class_temperature=True)
    rows = data.logits.astype(float)
    scores = (rows - rows.mean(axis=1, keepdims=True)) / fitted.temperature + fitted.bias
    np.testing.assert_array_equal(fitted.scores(data.logits), scores)
    assert fitted.probabilities(data.logits) == pytest.approx(softmax(scores, axis=1))
    for method in (fitted.scores, fitted.probabilities):
        with pytest.raises(InvalidInputError) as caught:
            method(data.logits[:, 1:])
        assert caught.value.field == "logits"
