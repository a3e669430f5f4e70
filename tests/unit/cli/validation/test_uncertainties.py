"""`lifelong validate` with uncertainties and members."""

from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

from lifelong.cli import cli
from lifelong_core.design import ModelComparison, UncertaintySettings, ValidationResult, validate
from lifelong_core.values.arrays import softmax
from lifelong_core.values.errors import InvalidInputError
from tests.unit.design.validations import recommending

BINARY = recommending("BA", number_of_classes=2)
LABELS = np.arange(60) % 2
RNG = np.random.default_rng(0)
LOGITS = np.eye(2)[LABELS] * 2 + RNG.normal(size=(60, 2))
MEMBERS = [LOGITS + RNG.normal(size=(60, 2)) for _ in range(3)]
UNCERTAIN = RNG.gamma(1, size=60)


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("found.json").write_text(BINARY.to_json())
    np.savez("test.npz", labels=LABELS, logits=LOGITS)
    np.savez("members.npz", labels=LABELS, **{f"logits_{k}": one for k, one in enumerate(MEMBERS, start=1)})
    np.save("u.npy", UNCERTAIN)
    for number, logits in enumerate(MEMBERS, start=1):
        np.save(f"logits{number}.npy", logits)
    np.save("probabilities2.npy", softmax(MEMBERS[1]))
    np.savez("member3.npz", logits=MEMBERS[2])


def run(*options: str, data: str = "test.npz") -> Result:
    arguments = [
        "validate",
        *([data] if data else []),
        "--recommendation",
        "found.json",
        "--replicates",
        "20",
    ]
    result = CliRunner().invoke(cli, [*arguments, *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def found(*options: str, data: str = "test.npz") -> ValidationResult:
    return ValidationResult.from_json(run("--json", *options, data=data).stdout)


def test_it_is_what_the_library_computes():
    options = ("--sigma", "0,0.2", "--damping", "0, 3", "--uncertainty-threshold", "0.4")
    expected = validate(
        BINARY,
        LABELS,
        logits=LOGITS,
        uncertainties=UNCERTAIN,
        uncertainty_settings=UncertaintySettings(sigmas=(0, 0.2), dampings=(0, 3), threshold=0.4),
        name="test",
        replicates=20,
    )
    assert found("--uncertainties", "u.npy", *options) == expected


def test_a_csv_file_is_read_like_a_npy_file() -> None:
    for text in (
        "\n".join(map(str, UNCERTAIN)),
        "\n".join(["uncertainty", *map(str, UNCERTAIN), ""]),
        "\ufeff" + "\r\n".join(["name,Uncertainty", *(f"image {u:g},{u}" for u in UNCERTAIN)]),
        "\r\n".join(["name;Uncertainty", *(f"image;{u}".replace(".", ",") for u in UNCERTAIN)]),
    ):
        Path("u.csv").write_text(text, encoding="utf-8")
        assert found("--uncertainties", "u.csv") == found("--uncertainties", "test=u.npy")


def test_uncertainties_may_be_an_array_of_the_data():
    np.savez("data.npz", labels=LABELS, logits=LOGITS, uncertainties=UNCERTAIN)
    held = found(data="data.npz").uncertainty_aware
    assert held == found("--uncertainties", "u.npy").uncertainty_aware


def test_members_may_be_files_or_arrays():
    options = [f"--members={file}" for file in ("logits1.npy", "probabilities2.npy", "member3.npz")]
    files = found(*options).uncertainty_aware
    assert files.members == 3
    np.savez("all.npz", labels=LABELS, logits=LOGITS, **{f"logits_{k + 1}": MEMBERS[k] for k in range(3)})
    arrays = found(data="all.npz").uncertainty_aware
    for one, other in zip(files.curves, arrays.curves, strict=True):
        assert one.estimates == pytest.approx(other.estimates, abs=1e-6)


def test_a_file_of_members_only_is_judged_by_their_mean():
    np.savez("mean.npz", labels=LABELS, probabilities=np.mean([softmax(one) for one in MEMBERS], axis=0))
    alone = found(data="members.npz")
    assert alone.estimate("BA") == found(data="mean.npz").estimate("BA")
    assert alone.uncertainty_aware.members == 3


def test_the_scores_are_printed_and_in_the_report():
    said = run("--uncertainties", "u.npy", "--html", "report.html").stdout
    for text in (
        "Uncertainty-aware scores of class 1",
        "UA-F1",
        "sigma = 0, d = 0",
        "d from 0 to 2, sigma = 0",
        "undecided",
    ):
        assert text in said
    assert 'id="uncertainty"' in Path("report.html").read_text()
    assert "Uncertainty-aware" not in run().stdout


def test_models_have_their_own_files():
    options = ("one=test.npz", "two=members.npz", "--uncertainties", "one=u.npy")
    results = ModelComparison.from_json(run("--json", *options, data="").stdout).results
    assert results["one"].uncertainty_aware.members is None
    assert results["two"].uncertainty_aware.members == 3


def write(name: str, content: bytes | str) -> str:
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return name


BROKEN = {
    "u.csv": [
        "",
        "1,2\n3,4",
        "uncertainty\nx",
        "a,uncertainty\n1",
        "uncertainty,uncertainty\n1,2",
        b"\xff\xfe\x00",
    ],
    "u.npy": [b"\x93NUMPY garbage", b"\x93NUMPY"],
}


@pytest.mark.parametrize("name", BROKEN)
def test_files_of_uncertainties_that_cannot_be_read(name):
    for content in BROKEN[name]:
        with pytest.raises(InvalidInputError, match=name) as refused:
            run("--uncertainties", write(name, content))
        assert refused.value.field == "uncertainties"


def test_objects_are_never_unpickled():
    np.save("pickled.npy", np.array([{}] * 60, dtype=object), allow_pickle=True)
    for option in ("--uncertainties", "--members"):
        with pytest.raises(InvalidInputError, match="without pickled objects"):
            run(option, "pickled.npy")


def test_files_of_members_that_cannot_be_read():
    np.savez("both.npz", logits=LOGITS, probabilities=softmax(LOGITS))
    np.savez("neither.npz", labels=LABELS)
    np.save("deep.npy", UNCERTAIN[:, None, None])
    for file in (
        "both.npz",
        "neither.npz",
        "deep.npy",
        write("text.csv", "1,2"),
        write("cut.npz", b"PK\x03"),
    ):
        with pytest.raises(InvalidInputError, match=file) as refused:
            run("--members", file, "--members", "logits1.npy")
        assert refused.value.field == "members"
    np.save("short.npy", LOGITS[1:])
    with pytest.raises(InvalidInputError, match=r"shape \(60, 2\)") as refused:
        run("--members", "logits1.npy", "--members", "short.npy")
    assert refused.value.field == "members.2"


def test_settings_that_do_not_fit_are_named_by_their_option() -> None:
    for option, value in (
        ("--sigma", "0,x"),
        ("--sigma", "0.2,0.1"),
        ("--sigma", "-1"),
        ("--damping", "0,1,2,3,4,5,6"),
        ("--uncertainty-threshold", "1"),
    ):
        with pytest.raises(InvalidInputError) as refused:
            run("--uncertainties", "u.npy", option, value)
        assert refused.value.field == option


def test_uncertainties_given_twice_are_refused():
    with pytest.raises(InvalidInputError, match="more than once"):
        run("--uncertainties", "u.npy", "--members", "logits1.npy")
    with pytest.raises(InvalidInputError, match="more than once"):
        run("--uncertainties", "u.npy", data="members.npz")


def test_options_that_do_not_fit() -> None:
    for options in (
        ("--uncertainties", "nowhere.npy"),
        ("--uncertainties", "other=u.npy"),
        ("--uncertainties", "u.npy", "--uncertainties", "u.npy"),
        ("--sigma", "0.1"),
        ("--uncertainties", "u.npy", "--uncertainty-kind", "spread"),
    ):
        arguments = ["validate", "test.npz", "--recommendation", "found.json", *options]
        result = CliRunner().invoke(cli, arguments)
        assert result.exit_code == click.UsageError.exit_code


def test_members_also_choose_the_cut_offs():
    Path("found.json").write_text(recommending("BA", "AUROC", number_of_classes=2).to_json())
    assert found("--cut-offs", "members.npz", data="members.npz").uncertainty_aware.members == 3
