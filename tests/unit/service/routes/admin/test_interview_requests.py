"""Every request to an interview gets an error that explains itself, or the present state: documents and pages."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lifelong_core.design.method.loader import load_method
from lifelong_core.design.problem_fingerprint import ITEMS
from tests.unit.service.conftest import Service
from tests.unit.service.consoles import Console
from tests.unit.service.routes.admin.test_interviews import ANSWERS, OPEN_CHOICE, PATH

TYPED = [
    *(
        "yes",
        "no",
        "argmax",
        "reach",
        "1",
        "2",
        "95 %",
        "0.5",
        "0, 1; 9, 0",
        "[[0, 1], [9",
        "benign: 0.9",
        "",
    ),
    *("malignant", "sens", "0 1 2; 3 0 4; 5 6 0", "1e400", "-1", "9" * 40, "\x00", "\ud800", "a" * 300, "٣"),
]
GUIDES = {guide.id: [option.id for option in guide.options] for guide in load_method().guides}
NUMBERS = st.integers(-2, 5) | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
SIMPLE = st.none() | st.booleans() | NUMBERS | st.sampled_from(TYPED) | st.text(max_size=5)
VALUES = st.recursive(
    SIMPLE,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=9,
)
ITEM_NAMES = st.sampled_from([*ITEMS, *GUIDES, "schema_version", "FP9.9", "", "é"])
LIKELY = st.sampled_from(sorted(ANSWERS.items(), key=str)).map(lambda pair: dict([pair]))
REVISIONS = st.fixed_dictionaries({}, optional={"revision": st.integers(1, 9) | VALUES})


def body(field: str, content: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A body as it should be, one with something else in it, or anything."""
    return st.one_of(
        st.builds(lambda more, given: {field: given, **more}, REVISIONS, content),
        st.fixed_dictionaries({field: VALUES}, optional={"surprise": VALUES}),
        VALUES,
    )


CALLS = st.one_of(
    st.tuples(st.just("answers"), body("answers", LIKELY | st.dictionaries(ITEM_NAMES, VALUES, max_size=3))),
    st.tuples(
        st.just("choices"),
        body(
            "choices",
            st.sampled_from([{guide: option} for guide, offered in GUIDES.items() for option in offered])
            | st.dictionaries(st.sampled_from([*GUIDES, "DG9"]), VALUES, max_size=2),
        ),
    ),
    st.tuples(st.sampled_from(["back", "finish"]), REVISIONS | VALUES),
)


FEW = settings.default.max_examples // 2
"""Each example is a dozen of requests."""


def test_whatever_is_sent_gets_an_answer_that_one_can_use(service: Service) -> None:
    @settings(max_examples=FEW)
    @given(body("answers", LIKELY), st.lists(CALLS, max_size=12))
    def send(first: Any, calls: list[tuple[str, Any]]) -> None:
        begun = sent(service, PATH, first)
        whole = begun if "id" in begun else sent(service, PATH, {"class_names": ["benign", "malignant"]})
        for what, content in calls:
            sent(service, f"{PATH}/{whole['id']}/{what}", content)

    send()


def sent(service: Service, path: str, content: Any) -> dict[str, Any]:
    """The document that answers, which says what was wrong and where, or where the interview stands."""
    text = json.dumps(content, ensure_ascii=True)
    answer = service.client.post(path, content=text, headers={"Content-Type": "application/json"})
    found: dict[str, Any] = answer.json()
    if answer.status_code >= 400:
        assert answer.status_code in (409, 422), (text, found)
        error = found["error"]
        assert error["message"], (text, found)
        assert error["field"], (text, found)
        return {}
    assert answer.status_code in (200, 201)
    expected = (
        {"metrics", "rejected", "document"} if path.endswith("/finish") else {"id", "stage", "question"}
    )
    assert expected <= set(found)
    return found


FIELDS = st.sampled_from([*dict.fromkeys(ITEMS.values()), "", "FP9.9"])
FORM_VALUES = st.sampled_from([*TYPED[:-4], "true", "false", "none", "U2", "0", "-1", "yes"]) | st.text(
    max_size=5
)
ANSWER = st.fixed_dictionaries(
    {"field": FIELDS},
    optional=dict.fromkeys(
        ("value", "value-0", "value-1", "value-0-0", "value-0-1", "value-1-0", "value-1-1", "value-0-2"),
        FORM_VALUES,
    ),
)
FORMS = st.one_of(
    st.tuples(st.just("answers"), ANSWER),
    st.tuples(st.just("withdraw"), st.fixed_dictionaries({"field": FIELDS})),
    st.tuples(
        st.just("resolve"),
        st.fixed_dictionaries(
            {
                "contradiction": st.just("target_value_with_many_classes") | FORM_VALUES,
                "resolution": FORM_VALUES,
            }
        ),
    ),
    st.tuples(
        st.just("choices"),
        st.fixed_dictionaries(
            {"guide": st.sampled_from([*GUIDES, "DG9"])},
            optional={"option": st.sampled_from(["BA", "EC", "TPR"]) | FORM_VALUES, "withdraw": FORM_VALUES},
        ),
    ),
    st.tuples(
        st.just("attach"),
        st.fixed_dictionaries(
            {"task": st.sampled_from(["skin", "", "x"])},
            optional=dict.fromkeys(
                ("threshold-0", "threshold-1-class", "threshold-0-by", "refit"), FORM_VALUES
            ),
        ),
    ),
)


def test_whatever_forms_say_gets_a_page(service: Service) -> None:
    console = Console(service, "admin")

    @settings(max_examples=FEW)
    @given(
        st.sampled_from([{}, ANSWERS, OPEN_CHOICE]), st.lists(st.tuples(FORMS, st.booleans()), max_size=10)
    )
    def send(known: dict[str, Any], forms: list[tuple[tuple[str, dict[str, str]], bool]]) -> None:
        path = console.begin(**known)
        for (what, form), is_stale in forms:
            revision = {"revision": "7"} if is_stale else {}
            answer = console.send(path, what, **form, **revision)
            assert answer.status_code in (200, 303, 404, 409, 422), (what, form, answer.text)
            shown = console.get(answer.headers["Location"]) if answer.status_code == 303 else answer
            assert "</html>" in shown.text or shown.headers.get("Location", "").endswith("/result")

    send()
