"""The pages of an interview in progress."""

from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.values.errors import InvalidInputError, NotFoundError
from lifelong_service.console.interview.inputs import RULE, Typed, entry_of
from lifelong_service.console.interview.views import (
    answer_of_item,
    is_guide,
    item_path,
    list_answers,
    path_of,
    question_of,
    title_of,
)
from lifelong_service.console.pages import page

if TYPE_CHECKING:
    from lifelong_core.design.recommendation.document import GuideOutcome
    from lifelong_core.entities.design.interviews import InterviewRecord

SIGNS = {"pro": "For:", "con": "Against:", "neutral": "Note:"}
"""Words before arguments, in the order of display."""


def interview_page(
    request: Request, record: "InterviewRecord", *, status: int = 200, notice: str | None = None
) -> Response:
    """Return the next page."""
    from lifelong_core.design.method.schema import Question
    from lifelong_core.design.recommendation.contradictions import Contradiction
    from lifelong_core.design.recommendation.document import GuideOutcome

    interview, shown = record.interview, {"status": status, "notice": notice}
    match interview.asked:
        case Contradiction():
            return _page(
                request,
                record,
                "contradiction",
                heading="These answers contradict each other",
                contradictions=[_contradiction(record, found) for found in interview.contradictions],
                **shown,
            )
        case Question(field=field):
            return _question(request, record, field, **shown)
        case GuideOutcome() as guide:
            return _choice(request, record, guide, **shown)
        case None:
            return page(
                request, "moved_on", title=title_of(record), result=f"{path_of(record)}/result", **shown
            )


def item_page(
    request: Request,
    record: "InterviewRecord",
    item: str,
    *,
    typed: Typed | None = None,
    error: InvalidInputError | None = None,
    abstains: bool | None = None,
    notice: str | None = None,
    rule: str | None = None,
) -> Response:
    """Return the page of one question or choice, in any order.

    Args:
        request: the request.
        record: the interview.
        item: the field or guide.
        typed: the sent form that is not saved.
        error: the error in the form.
        abstains: whether the costs get a column for abstaining.
        notice: why a form without errors was not saved.
        rule: the rule by which the table of costs was filled in; None: it was not.

    Raises:
        NotFoundError: there is no such item, or no such choice at present.
    """
    status = 422 if error is not None else 200 if notice is None or rule is not None else 409
    if not is_guide(item):
        return _question(
            request,
            record,
            item,
            typed=typed,
            error=error,
            abstains=abstains,
            status=status,
            notice=notice,
            rule=rule,
        )
    for guide in record.interview.guides:
        if guide.guide == item:
            return _choice(request, record, guide, error=error, status=status, notice=notice)
    raise NotFoundError(
        f"there is no choice {item} to be made at present.", hint="Answer the questions first."
    )


def _question(
    request: Request,
    record: "InterviewRecord",
    field: str,
    *,
    typed: Typed | None = None,
    error: InvalidInputError | None = None,
    abstains: bool | None = None,
    status: int = 200,
    notice: str | None = None,
    rule: str | None = None,
) -> Response:
    interview, question = record.interview, question_of(field)
    wrong = None if error is None else error.field
    entry = entry_of(question, interview, typed=typed, wrong=wrong, abstains=abstains)
    return _page(
        request,
        record,
        "question",
        status=status,
        notice=notice,
        heading=question.question,
        item=field,
        question=question,
        entry=entry,
        other_columns=f"{item_path(record, field)}&columns={'plain' if entry.abstains else 'abstain'}",
        is_answered=getattr(interview.fingerprint, field) is not None,
        submit=submit_label(record, field),
        rule=rule or "",
        rule_is_wrong=wrong == RULE,
        error=error,
    )


def submit_label(record: "InterviewRecord", field: str) -> str:
    """Return the label of the button that saves the answer to a question."""
    return "Next" if getattr(record.interview.fingerprint, field) is None else "Save"


def _choice(
    request: Request,
    record: "InterviewRecord",
    guide: "GuideOutcome",
    *,
    error: InvalidInputError | None = None,
    status: int = 200,
    notice: str | None = None,
) -> Response:
    from lifelong_core.design.recommendation.wording import option_label

    focus = (*guide.chosen, *([guide.default] if guide.default else []), *guide.options)[0]
    options = [
        {
            "value": option,
            "label": option_label(guide.guide, option),
            "is_chosen": option in guide.chosen,
            "is_default": option == guide.default,
            "has_focus": option == focus,
            "arguments": [
                {"sign": SIGNS[argument.polarity], "polarity": argument.polarity, "text": argument.text}
                for polarity in SIGNS
                for argument in guide.arguments_about(option)
                if argument.polarity == polarity
            ],
        }
        for option in guide.options
    ]
    return _page(
        request,
        record,
        "choice",
        status=status,
        notice=notice,
        heading=guide.title,
        item=guide.guide,
        guide=guide,
        options=options,
        is_chosen=guide.guide in record.interview.choices,
        error=error,
    )


def _page(
    request: Request, record: "InterviewRecord", template: str, *, item: str | None = None, **context: Any
) -> Response:
    """Return a page of an interview, with the progress and the list of answers."""
    interview = record.interview
    progress = interview.progress
    return page(
        request,
        template,
        path=path_of(record),
        title=title_of(record),
        revision=record.revision,
        progress={
            "share": f"{progress.share:.3f}",
            "text": f"{progress.answered} of at least {progress.fewest} answered"
            if progress.certain
            else f"All {progress.answered} questions answered",
        },
        answers=list_answers(interview, item),
        back=_back(record, item),
        **context,
    )


def _back(record: "InterviewRecord", item: str | None) -> str | None:
    """Return the path of the previous answer; the page withdraws nothing."""
    history = list(record.interview.history)
    before = history[: history.index(item)] if item in history else history
    reachable = [name for name in before if not is_guide(name)] if record.interview.question else before
    return item_path(record, reachable[-1]) if reachable else None


def _contradiction(record: "InterviewRecord", found: Any) -> dict[str, Any]:
    return {
        "id": found.id,
        "explanation": found.explanation,
        "resolutions": [resolution.text for resolution in found.resolutions],
        "answers": [answer_of_item(record.interview, item) for item in found.answers],
    }
