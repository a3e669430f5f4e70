"""Checks of names and texts in queries, headers and forms."""

from collections.abc import Iterable, Sequence

from starlette.datastructures import FormData

from lifelong_core.values.class_labels import is_missing, key_form
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.names import MAXIMUM_GROUP_LENGTH


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
