"""Parameters of predictions, in the query or in headers, and their limits."""

from collections.abc import Iterable, Sequence

from starlette.datastructures import FormData
from starlette.requests import Request

from lifelong_core.values.class_labels import is_missing, key_form
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.names import DEFAULT_ENVIRONMENT, check_name
from lifelong_service.prediction.requests import RequestContext

MAXIMUM_GROUP_LENGTH = 256
MAXIMUM_REQUEST_ID_LENGTH = 128

HEADERS = {
    "environment": "X-Lifelong-Environment",
    "group": "X-Lifelong-Group",
    "request_id": "X-Lifelong-Request-Id",
    "model": "X-Lifelong-Model",
}
"""Query parameters and their headers; the query takes precedence."""
_PREFIX = b"x-lifelong-"


def parameters_of(request: Request) -> dict[str, str]:
    """Return the parameters of a request.

    Raises:
        InvalidInputError: a parameter is unknown (a misspelt `environment` must not become `default`), or a header
            is not ASCII.
    """
    found = {name: _value_of(request, header) for name, header in _given_headers(request).items()}
    if request.scope["query_string"]:
        check_parameters(request.query_params, tuple(HEADERS))
        found |= request.query_params
    return found


def _given_headers(request: Request) -> dict[str, str]:
    """The headers of `HEADERS` that a request has, by the names of their parameters."""
    given = {name for name, _ in request.headers.raw if name.startswith(_PREFIX)}
    return (
        {name: header for name, header in HEADERS.items() if header.lower().encode() in given}
        if given
        else {}
    )


def check_parameters(given: Iterable[str], known: Sequence[str]) -> None:
    """Check that all names in the query are known, for routes where an ignored name would do harm.

    Raises:
        InvalidInputError: a name is unknown.
    """
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise InvalidInputError(
            "there is no such parameter.", field=unknown[0][:80], hint=f"Use {', '.join(known)}."
        )


def _value_of(request: Request, header: str) -> str:
    value = request.headers[header]
    if not value.isascii():
        # Clients send UTF-8 or Latin-1: one patient would get two hashes, and an erasure would miss one.
        raise InvalidInputError(
            "expected ASCII: which characters other bytes stand for is not said.",
            field=header,
            hint="Give it in the query instead, percent-encoded as UTF-8.",
        )
    return value


def check_fields(
    form: FormData, known: Sequence[str], *, repeatable: Sequence[str] = (), hint: str = ""
) -> None:
    """Check that a multipart form holds only known fields, each once unless it is repeatable.

    Raises:
        InvalidInputError: a field would be ignored, like an `environment` that belongs in the query.
    """
    seen: set[str] = set()
    for name, _ in form.multi_items():
        if name not in known:
            raise InvalidInputError(
                "there is no such form field.", field=name[:80], hint=f"Send only {', '.join(known)}.{hint}"
            )
        if name in seen and name not in repeatable:
            raise InvalidInputError("the form field is given twice.", field=name, hint="Send it once.")
        seen.add(name)


def request_context(given: dict[str, str]) -> RequestContext:
    """Return the context of a prediction, with validated parameters.

    Raises:
        InvalidInputError: a value has other characters or is too long; the message names the parameter.
    """
    return RequestContext(
        model=given.get("model"),
        environment=check_name(given.get("environment", DEFAULT_ENVIRONMENT), field="environment"),
        group=check_group(given.get("group"), field="group"),
        request_id=check_text(given.get("request_id"), field="request_id", maximum=MAXIMUM_REQUEST_ID_LENGTH),
    )


def check_group(value: str | None, *, field: str) -> str | None:
    """Return the key of a patient or study as `key_form`, or None.

    Raises:
        InvalidInputError: as `check_text`, or it is what programs write where there is no key, such as `nan`.
    """
    text = check_text(value, field=field, maximum=MAXIMUM_GROUP_LENGTH)
    if text is not None and is_missing(text):
        raise InvalidInputError(
            f"{text!r} is no key of a patient: all such cases would be one patient.",
            field=field,
            hint="Leave it out (null in a list) where there is none: the case is then independent of all others.",
        )
    return text


def check_text(value: str | None, *, field: str, maximum: int) -> str | None:
    """Return a printable text of 1 to `maximum` characters as `key_form`, or None.

    Raises:
        InvalidInputError: it is empty, too long or holds control characters.
    """
    if value is None:
        return None
    text = key_form(value)
    if 0 < len(text) <= maximum and text.isprintable():
        return text
    raise InvalidInputError(
        f"expected 1 to {maximum} printable characters, got {len(text)} in {value[:40]!r}.",
        field=field,
        hint="Use a short pseudonymous key.",
    )
