"""Folders of labelled images, tables of groups and files of logits: what is read, and how errors are reported."""

import unicodedata

import numpy as np
import pytest

from lifelong.case_groups import groups_from_csv, groups_from_pattern
from lifelong.labelled_images import labelled_images
from lifelong.labelled_logits import read_labelled_logits
from lifelong_core.deploy import LabeledLogits
from lifelong_core.values.errors import InvalidInputError

CLASSES = ("basal cell", "malignant")


@pytest.fixture
def folder(tmp_path):
    for name in CLASSES:
        (tmp_path / name).mkdir()
        for number in range(2):
            (tmp_path / name / f"p{number}_{name[0]}.png").write_bytes(b"")
    return tmp_path


def test_images_are_read_with_their_classes_and_hidden_files_passed_over(folder):
    (folder / ".DS_Store").write_bytes(b"")
    (folder / "malignant" / "Thumbs.db").write_bytes(b"")
    (folder / "groups.csv").write_bytes(b"")
    images = labelled_images(folder, CLASSES)
    assert images.names == (
        "basal cell/p0_b.png",
        "basal cell/p1_b.png",
        "malignant/p0_m.png",
        "malignant/p1_m.png",
    )
    assert images.labels == (0, 0, 1, 1)


@pytest.mark.parametrize("name", ["Basal-Cell", "basal_cell", "BASAL CELL", "basal cells"])
def test_a_near_match_of_a_folder_is_offered(folder, name):
    (folder / "basal cell").rename(folder / name)
    with pytest.raises(InvalidInputError, match="no sub-folder for the class basal cell") as caught:
        labelled_images(folder, CLASSES)
    assert caught.value.hint == f"Did you mean {name}? Rename {name} to basal cell."


def test_one_wrong_letter_of_a_short_name_is_offered_with_its_class(tmp_path):
    for name in ("lov", "mid", "hihg", "notes"):
        (tmp_path / name).mkdir()
    told = "classes low, high; it has hihg, lov, mid, notes, where no class of the task is named hihg, lov, notes"
    with pytest.raises(InvalidInputError, match=told) as caught:
        labelled_images(tmp_path, ("low", "mid", "high"))
    assert caught.value.hint == "Did you mean lov, hihg? Rename lov to low, hihg to high."


def test_a_folder_is_offered_for_one_class_only(tmp_path):
    (tmp_path / "grade").mkdir()
    with pytest.raises(InvalidInputError) as caught:
        labelled_images(tmp_path, ("grade 1", "grade 2"))
    assert caught.value.hint == "Did you mean grade? Rename grade to grade 1."


def test_a_folder_of_nothing_alike_is_not_offered(folder):
    (folder / "basal cell").rename(folder / "x-rays")
    with pytest.raises(InvalidInputError, match="it has malignant, x-rays") as caught:
        labelled_images(folder, CLASSES)
    assert caught.value.hint is not None
    assert "Did you mean" not in caught.value.hint


def test_what_would_be_ignored_is_named(folder):
    (folder / "unsure").mkdir()
    with pytest.raises(InvalidInputError, match="no class of the task: unsure") as caught:
        labelled_images(folder, CLASSES)
    assert "--leave-out 'unsure'" in str(caught.value.hint)
    assert len(labelled_images(folder, CLASSES, leave_out=["unsure"]).files) == 4
    (folder / "unsure").rmdir()
    (folder / "stray.jpg").write_bytes(b"")
    with pytest.raises(InvalidInputError, match=r"in no class folder: stray\.jpg"):
        labelled_images(folder, CLASSES)
    (folder / "stray.jpg").rename(folder / "malignant" / "scan.dcm")
    with pytest.raises(InvalidInputError, match=r"no images: scan\.dcm"):
        labelled_images(folder, CLASSES)
    (folder / "malignant" / "scan.dcm").unlink()
    (folder / "malignant" / "patient 7").mkdir()
    with pytest.raises(InvalidInputError, match="sub-folders: patient 7"):
        labelled_images(folder, CLASSES)


def test_groups_come_from_a_table(folder):
    names = labelled_images(folder, CLASSES).names
    table = folder / "groups.csv"
    table.write_text(
        "file,group\np0_b.png,ann\nbasal cell/p1_b.png,bob\np0_m.png,ann\np1_m.png,cid\nother.png,x\n"
    )
    assert groups_from_csv(table, names).tolist() == [0, 1, 0, 2]
    table.write_text("file,group\np0_b.png,ann\n")
    with pytest.raises(InvalidInputError, match=r"no group for 3 of 4 files, e.g. basal cell/p1_b.png"):
        groups_from_csv(table, names)
    table.write_text("image,patient\na,b\n")
    with pytest.raises(InvalidInputError, match="lacks the column 'file'; it has image, patient"):
        groups_from_csv(table, names)
    table.write_text("file,group\np0_b.png,ann\np0_b.png,bob\n")
    with pytest.raises(InvalidInputError, match="two groups"):
        groups_from_csv(table, names)
    table.write_text("file,group\na.png,ann\n")
    with pytest.raises(InvalidInputError, match=r"several classes have a file a\.png"):
        groups_from_csv(table, ["x/a.png", "y/a.png"])


def test_groups_come_from_names(folder):
    names = labelled_images(folder, CLASSES).names
    assert groups_from_pattern(r"(?P<group>[^_]+)_.*", names).tolist() == [0, 1, 0, 1]
    for pattern, problem in (
        ("(", "no regular expression"),
        ("p.*", "no part named group"),
        ("(?P<group>q.)_.*", "does not match 4 of 4 files"),
    ):
        with pytest.raises(InvalidInputError, match=problem) as caught:
            groups_from_pattern(pattern, names)
        assert caught.value.field == "--group-pattern"


def test_a_table_of_logits_is_read(tmp_path) -> None:
    row = {"label": "malignant", "group": "ann", "a": "1.5", "b": "-2"}
    for header in (
        "label,logit_0,logit_1,group",
        "label,logit_basal cell,logit_malignant,group",
        "group,label,basal cell,malignant",
    ):
        values = [
            row.get(name, "-2" if name.endswith(("1", "malignant")) else "1.5") for name in header.split(",")
        ]
        path = tmp_path / "logits.csv"
        path.write_text("\n".join([header, ",".join(values), ",".join(values).replace("ann", "bob")]))
        assert read_labelled_logits(path, CLASSES) == LabeledLogits(
            [[1.5, -2.0]] * 2, [1, 1], np.array([0, 1])
        )


def test_a_table_that_does_not_fit_is_named(tmp_path) -> None:
    path = tmp_path / "logits.csv"
    for content, problem in (
        ("label,logit_0\n0,1\n", "expected a column for each class"),
        ("label,logit_0,logit_1,logit_2\n0,1,2,3\n", "no class for the column 'logit_2'"),
        ("label,logit_0,logit_1\nbenign,1,2\n", "row 2: 'benign' is no class"),
        ("label,logit_0,logit_1\n0,1,x\n", "row 2: 'x' is no number"),
        ("label,logit_0,logit_1\n0,1\n", "row 2 has another number of values"),
        ("label,logit_0,logit_1\n", "no row"),
        ("logit_0,logit_1\n1,2\n", "lacks the column 'label'"),
    ):
        path.write_text(content)
        with pytest.raises(InvalidInputError, match=problem) as caught:
            read_labelled_logits(path, CLASSES)
        assert str(path) in caught.value.message


def test_folders_belong_to_their_class_in_any_form_of_unicode(tmp_path):
    for form in ("NFD", "NFC"):
        for name in ("Läsion", "Nävus"):
            folder = tmp_path / form / unicodedata.normalize(form, name)
            folder.mkdir(parents=True)
            (folder / "1.png").write_bytes(b"")
        for classes in (("Läsion", "Nävus"), ("La\u0308sion", "Na\u0308vus")):
            assert labelled_images(tmp_path / form, classes).labels == (0, 1)
    (tmp_path / "NFC" / "La\u0308sion").mkdir()
    with pytest.raises(InvalidInputError, match="two forms of Unicode"):
        labelled_images(tmp_path / "NFC", ("Läsion", "Nävus"))


def test_cases_without_a_group_are_independent(tmp_path) -> None:
    path = tmp_path / "logits.csv"
    for missing in ("", " ", "nan", "NaN", "None", "null", "NA"):
        rows = [f"0,1,2,{group}" for group in ("ann", missing, "ann", missing)]
        path.write_text("\n".join(["label,logit_0,logit_1,group", *rows]))
        assert read_labelled_logits(path, ("a", "b")).groups.tolist() == [0, 1, 0, 2]
        np.savez(
            tmp_path / "x.npz", logits=[[1, 2]] * 4, labels=[0] * 4, groups=["ann", missing, "ann", missing]
        )
        assert read_labelled_logits(tmp_path / "x.npz", ("a", "b")).groups.tolist() == [0, 1, 0, 2]
        table = tmp_path / "groups.csv"
        table.write_text(f"file,group\n1.png,ann\n2.png,{missing}\n3.png,ann\n4.png,{missing}\n")
        assert groups_from_csv(table, [f"a/{k}.png" for k in range(1, 5)]).tolist() == [0, 1, 0, 2]


def test_numbers_of_groups_may_be_missing():
    groups = np.array([7, np.nan, 7, np.nan])
    assert np.unique(LabeledLogits([[1, 2]] * 4, [0] * 4, groups).groups).size == 3


def test_tables_of_any_spreadsheet_are_read(tmp_path) -> None:
    path = tmp_path / "table.csv"
    for text in (
        "\ufefflabel;logit_0;logit_1;group\r\nb;-1,5;2;ann\r\n",
        "label\tlogit_0\tlogit_1\tgroup\nb\t-1,5\t2,0\tann\n",
        'sep=;\n"label";"logit_0";"logit_1";"group";\n"b";"-1,5";"2,0";"ann";\n;;;;\n',
        'label,logit_0,logit_1,group\n\n"b","-1.5",2,ann\n',
        "label;logit;group\n1;3,5;ann\n",
    ):
        path.write_bytes(text.encode())
        labelled = read_labelled_logits(path, ("a", "b"))
        assert (labelled.logits[:, 1] - labelled.logits[:, 0]).tolist() == [3.5]
        assert labelled.labels.tolist() == [1]


def test_tables_that_may_mean_two_things_are_refused(tmp_path) -> None:
    path = tmp_path / "table.csv"
    for text, problem in (
        ("label;logit_0;logit_1\n0;1.234;0,5\n", "some numbers have a comma and others a point"),
        ("label,logit\n0,1,5\n", "another number of values than the header"),
        ("label,logit_0,logit_0\n0,1,5\n", "two columns 'logit_0'"),
        ("label,logit_0\n0,1\n", "expected a column for each class"),
        ("0;1,5;2,5\n1;1,5;2,5\n", "expected a column for each class"),
        ("label,logit_0,logit_1\n2,1,5\n", "'2' is no class"),
    ):
        path.write_text(text)
        with pytest.raises(InvalidInputError, match=problem):
            read_labelled_logits(path, ("a", "b"))


def test_a_number_in_a_table_is_the_class_of_that_name(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("label,logit_0,logit_1\n1,1,5\n2,1,5\n")
    assert read_labelled_logits(path, ("1", "2")).labels.tolist() == [0, 1]
    np.savez(tmp_path / "x.npz", logits=[[1, 5], [1, 5]], labels=["1", "2"])
    assert read_labelled_logits(tmp_path / "x.npz", ("1", "2")).labels.tolist() == [0, 1]
    sent = read_labelled_logits(path, ("1", "2")).to_bytes(("1", "2"))
    assert LabeledLogits.from_bytes(sent, class_names=("1", "2")).labels.tolist() == [0, 1]
    path.write_text("label,logit_0,logit_1\n0,1,5\n1,1,5\n")
    with pytest.raises(InvalidInputError, match="'0' is no class"):
        read_labelled_logits(path, ("1", "2"))
