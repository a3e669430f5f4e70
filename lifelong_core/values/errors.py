"""The root of all exceptions. Errors are part of the API: each states the problem and how to fix it."""

from collections.abc import Mapping
from typing import Any


class LifelongError(Exception):
    """Root of all errors of this product.

    Attributes:
        message: the problem and the expected value.
        field: the argument, request field or setting at fault, if there is one.
        hint: how the caller can fix it.
        details: figures on the problem, JSON values, if there are any.
        actor: name of the refused token, if known; for the audit log, never for the client.
        is_audited: whether the audit log has an entry on the error.
    """

    code = "error"
    details: Mapping[str, Any] | None = None
    actor: str | None = None
    is_audited = False

    def __init__(
        self, message: str | None = None, *, field: str | None = None, hint: str | None = None
    ) -> None:
        self.message = message or (type(self).__doc__ or "").split("\n", 1)[0]
        self.field = field
        self.hint = hint
        super().__init__(self.message)

    def __str__(self) -> str:
        """The field, the message and the hint, in this order."""
        where = f"{self.field}: " if self.field else ""
        return f"{where}{self.message}" + (f" {self.hint}" if self.hint else "")


class InvalidInputError(LifelongError, ValueError):
    """A value does not fit what was expected."""

    code = "invalid_input"


class UnidentifiableError(InvalidInputError):
    """The calibration set cannot tell the classes' prevalences apart (thesis section 6.1.3, assumption ii)."""

    code = "unidentifiable"


class PayloadTooLargeError(InvalidInputError):
    """The request is larger than the limits allow."""

    code = "payload_too_large"


class UnsupportedMediaTypeError(InvalidInputError):
    """The content type of the request is not one that this call accepts."""

    code = "unsupported_media_type"


class NotFoundError(LifelongError):
    """What was named does not exist."""

    code = "not_found"


class ConflictError(LifelongError):
    """The state was changed in the meantime, or the name is already taken."""

    code = "conflict"


class UnauthenticatedError(LifelongError):
    """A valid bearer token is needed."""

    code = "unauthenticated"


class ForbiddenError(LifelongError):
    """The token lacks the scope that this call needs."""

    code = "forbidden"


class RetryableError(LifelongError):
    """The same request may succeed later.

    Attributes:
        retry_after_seconds: when to try again.
    """

    def __init__(
        self,
        message: str | None = None,
        *,
        field: str | None = None,
        hint: str | None = None,
        retry_after_seconds: int = 1,
    ) -> None:
        super().__init__(message, field=field, hint=hint)
        self.retry_after_seconds = retry_after_seconds


class UnavailableError(RetryableError):
    """The service cannot answer at the moment."""

    code = "unavailable"


class TooManyRequestsError(RetryableError):
    """The token has used up what it may ask for at the moment."""

    code = "too_many_requests"


class ConfigurationError(LifelongError):
    """A setting, a file or the database does not allow the process to start."""

    code = "configuration"


class SchemaError(ConfigurationError):
    """The database has another schema than this version of the product."""

    code = "schema"
