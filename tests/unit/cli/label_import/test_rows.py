"""Rows of CSV files as spreadsheets and other programs write them."""

from io import BytesIO
from itertools import pairwise
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifelong.label_import.rows import (
    COLUMNS,
    IGNORED_COLUMNS,
    LONGEST_LINE,
    LabelRow,
    RejectedRow,
    Row,
    UnlabelledRow,
    read_lines,
    read_rows,
)
from lifelong_core.operations.labelling_plans import COLUMNS as PLAN_COLUMNS
from lifelong_core.values.errors import InvalidInputError
from lifelong_service.schemas.labels import Label

ID = "0190b5a8-7c1e-7000-8000-3f6d9c1e2a4b"


def rows(text: str | bytes, **options: str) -> list[Row]:
    content = text if isinstance(text, bytes) else text.encode()
    return list(read_rows(BytesIO(content), **options))


def only(text: str | bytes, **options: str) -> Row:
    (row,) = rows(text, **options)
    return row


def test_the_columns_are_the_fields_of_a_label() -> None:
    assert sorted(COLUMNS) == sorted(Label.model_fields)


def test_the_columns_of_a_labelling_plan_are_known() -> None:
    assert set(PLAN_COLUMNS) <= {*COLUMNS, *IGNORED_COLUMNS}
    header = ",".join(PLAN_COLUMNS)
    assert rows(f"{header}\n{ID},,0.5,1,0.1,,2026-01-01\n{ID},2,0.5,1,0.1,,2026-01-01\n") == [
        UnlabelledRow(2),
        LabelRow(3, {"prediction_id": ID, "label": "2", "propensity": 0.5}),
    ]


def test_every_column_reaches_the_document() -> None:
    text = (
        "request_id,row,model,environment,label,source,propensity\n"
        'r 1,3,resnet@2,clinic-a,"in situ, other",lab,0.25\n'
    )
    assert only(text) == LabelRow(
        2,
        {
            "request_id": "r 1",
            "row": 3,
            "model": "resnet@2",
            "environment": "clinic-a",
            "label": "in situ, other",
            "source": "lab",
            "propensity": 0.25,
        },
    )


@pytest.mark.parametrize(
    "text",
    [
        f"prediction_id,label\n{ID},benign\n",
        f"prediction_id,label\n{ID},benign",
        f"\ufeffprediction_id,label\r\n{ID},benign\r\n",
        f"prediction_id;label\n{ID};benign\n;\n\n",
        f"sep=;\r\nprediction_id;label\r\n{ID};benign\r\n",
        f"prediction_id\tlabel\n{ID}\tbenign\n",
        f" Prediction ID , Label \n {ID} , benign \n",
        f'"prediction-id","label"\n"{ID}","benign"\n',
        f'prediction_id, label\n{ID}, "benign"\n',
        f"label,prediction_id,,\nbenign,{ID},,\n,,,\n",
        f"\nprediction_id,label\n{ID.upper()},benign\n",
    ],
)
def test_habits_of_spreadsheets(text: str) -> None:
    row = only(text)
    assert isinstance(row, LabelRow)
    assert row.document == {"prediction_id": ID, "label": "benign"}
    assert text.split("\n")[row.line - 1].lower().count(ID) == 1


@pytest.mark.parametrize(
    ("text", "propensity"),
    [
        (f"prediction_id;label;propensity\n{ID};a;0,25", 0.25),
        (f"prediction_id,label,propensity\n{ID},a,1e-3", 0.001),
    ],
)
def test_a_propensity_may_have_a_decimal_comma_where_the_comma_separates_nothing(
    text: str, propensity: float
) -> None:
    row = only(text)
    assert isinstance(row, LabelRow)
    assert row.document["propensity"] == propensity


def test_the_source_of_the_command_fills_empty_cells_only() -> None:
    text = f"prediction_id,label,source\n{ID},a,\n{ID},a,panel\n"
    sources = [row.document["source"] for row in rows(text, source="lab") if isinstance(row, LabelRow)]
    assert sources == ["lab", "panel"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"{ID},a", "2 cells, the header has 5"),
        (f"{ID},,,a,,,x", "7 cells"),
        (f'{ID},"a', "not CSV"),
        (f'{ID},"a"b,,,', "not CSV"),
        ("no id,,,a,", "prediction_id: 'no id' is not a UUID"),
        (f"{ID},r,,a,", "either prediction_id or request_id"),
        (",,,a,", "either prediction_id or request_id"),
        (",r,-1,a,", "row: expected an index"),
        (",r,1.0,a,", "row: expected an index"),
        (f"{ID},,,a,0", r"propensity: expected a probability in (0, 1]"),
        (f"{ID},,,a,1.5", r"propensity: expected a probability in (0, 1]"),
        (f"{ID},,,a,nan", r"propensity: expected a probability in (0, 1]"),
        (f"{ID},,,a,often", r"propensity: expected a probability in (0, 1]"),
        (f",{'r' * 129},,a,", "request_id: expected at most 128"),
        (f"{ID},,,a\0,", "U+0000"),
        (f"{ID},,,{'a' * LONGEST_LINE},", "longer than 4,000 bytes"),
        (f"{ID},,,\udce4,", "not UTF-8"),
    ],
)
def test_a_malformed_row_is_named_and_spoils_no_other(line: str, message: str) -> None:
    good = f"{ID},,,a,"
    text = f"prediction_id,request_id,row,label,propensity\n{good}\n{line}\n{good}\n"
    first, malformed, last = rows(text.encode("utf-8", "surrogateescape"))
    assert isinstance(first, LabelRow)
    assert isinstance(malformed, RejectedRow)
    assert isinstance(last, LabelRow)
    assert (first.line, malformed.line, last.line) == (2, 3, 4)
    assert malformed.reason == "malformed"
    assert message in malformed.message


@pytest.mark.parametrize(
    ("cell", "column"), [("No Name", "environment"), ("s" * 65, "source"), ("x" * 129, "request_id")]
)
def test_what_the_service_would_refuse_is_malformed(cell: str, column: str) -> None:
    values = {"request_id": "r", "label": "a", column: cell}
    row = only(f"{','.join(values)}\n{','.join(values.values())}\n")
    assert isinstance(row, RejectedRow)
    assert row.message.startswith(column)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no header"),
        (b"\r\n\r\n", "no header"),
        (b"prediction_id,truth\n", "no column 'truth'"),
        (b"prediction_id,label,label\n", "two columns have the name 'label'"),
        (b"prediction_id\n", "'label' is missing"),
        (b"label,model\n", "'prediction_id' and 'request_id' are missing"),
        ("prediction_id,label\n".encode("utf-16"), "not UTF-8"),
        (b'prediction_id,"label\n', "the header is not CSV"),
        (b"x" * 10_000, "no header"),
    ],
)
def test_a_header_that_does_not_fit_lists_the_known_columns(content: bytes, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as refused:
        rows(content)
    assert refused.value.field == "FILE"
    assert refused.value.hint
    if "UTF-8" not in message:
        assert all(name in refused.value.hint for name in COLUMNS)


@given(st.lists(st.binary(max_size=12).map(lambda one: one.replace(b"\n", b"")), max_size=8), st.booleans())
def test_lines_are_those_of_the_file(lines: list[bytes], ends_with_newline: bool) -> None:
    content = b"\n".join(lines) + b"\n" * (ends_with_newline and bool(lines))
    expected = content.split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    found = list(read_lines(BytesIO(content)))
    assert [line for _, line in found] == [line.removesuffix(b"\r") for line in expected]
    assert all(later[0] == earlier[0] + 1 for earlier, later in pairwise(found))


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize("surplus", [0, 1, 2, 3, LONGEST_LINE, 3 * LONGEST_LINE])
def test_a_line_above_the_limit_is_skipped_as_a_whole(surplus: int, end: bytes) -> None:
    content = b"x" * (LONGEST_LINE + surplus)
    found = list(read_lines(BytesIO(b"a\n" + content + end + b"b\n" * bool(end))))
    expected = [(1, b"a"), (2, None if surplus else content)]
    assert found == expected + [(3, b"b")] * bool(end)


def test_any_uuid_of_the_standard_forms_is_taken() -> None:
    one = uuid4()
    for text in (str(one), one.hex, f"{{{one}}}", one.urn):
        row = only(f"prediction_id,label\n{text},a\n")
        assert isinstance(row, LabelRow)
        assert UUID(row.document["prediction_id"]) == one
