"""Changes by forms: the console says in words what a form does; only its confirmation is carried out."""

from collections.abc import Callable

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.operations.operation import Answer, Call
from lifelong_core.values.errors import ConflictError, InvalidInputError, LifelongError, NotFoundError
from lifelong_service.console.changes import change_of
from lifelong_service.console.pages import note_done, page, see_other
from lifelong_service.guard.access import carry_out, context_of
from lifelong_service.guard.errors import error_response

CONFIRMED = "confirmed"
"""Field of a form that a person has confirmed."""
REFUSALS = (InvalidInputError, NotFoundError, ConflictError)
"""Errors that the page of the form shows."""


def decide(
    request: Request,
    form: FormData,
    read: Callable[[], Call[Answer]],
    *,
    refused: Callable[[LifelongError, int], Response],
    back: str,
    goal: Callable[[Answer], str] | None = None,
    shown: Callable[[Answer], Response] | None = None,
) -> Response:
    """Carry out the call of a confirmed form; for another form, return the page that asks for the confirmation.

    Args:
        request: the request.
        form: the sent form.
        read: returns the call in the form; it may raise `REFUSALS`.
        refused: returns the page of the form, from the error and its HTTP status.
        back: path of the page of the form.
        goal: path of the page that follows, from the answer of the call; None: `back`.
        shown: returns the page that shows the answer, where it cannot be shown later; None: `goal` follows.

    Raises:
        LifelongError: none of `REFUSALS`.
    """
    try:
        call = read()
        change = change_of(call)
        if CONFIRMED not in form:
            return page(
                request,
                "confirmation",
                change=change,
                effects=change.describe(context_of(request), call),
                fields=[(name, value) for name, value in form.multi_items() if isinstance(value, str)],
                field=CONFIRMED,
                action=request.url.path,
                back=back,
            )
        answer = carry_out(request, call)
    except REFUSALS as error:
        return refused(error, error_response(error).status_code)
    if shown is not None:
        return shown(answer)
    response = see_other(back if goal is None else goal(answer))
    note_done(response, call.operation.name)
    return response
