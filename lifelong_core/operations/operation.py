"""The declaration of an operation: what it takes, what it answers, the scope that it needs, and its HTTP path.

A `Call` is the input: its fields are the parameters of the path, the query (GET, DELETE) or the body (POST, PUT) of the
HTTP request. The function that the decorator `operation` marks carries it out; its docstring describes the operation
for everybody. Changes are audited by the store, in the transaction of the change, under the name of the actor.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from inspect import cleandoc
from types import ModuleType
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeAlias, TypeVar, cast, get_type_hints

from pydantic import ConfigDict, Field, ValidationError

from lifelong_core.configuration.settings import Settings
from lifelong_core.entities.access import Scope
from lifelong_core.store import Store
from lifelong_core.values.documents import RequestDocument
from lifelong_core.values.validation_errors import as_input_error

Answer = TypeVar("Answer")
LARGEST = 2**31 - 1
"""Largest number of a version, a sequence or an id: that of a column of integers."""

ModelReference: TypeAlias = Annotated[str, Field(description="Name of the model, or name@version.")]
ForceReason: TypeAlias = Annotated[
    str | None, Field(description="Why costs that look like a mistake are right; kept in the audit log.")
]
Method: TypeAlias = Literal["GET", "POST", "PUT", "DELETE"]
JOB_LOCATION = "/v1/admin/jobs/{id}"
"""`location` of operations that submit a job."""


class Call(RequestDocument, Generic[Answer]):
    """The input of one operation, whose answer is of the type `Answer`. Unknown fields are refused."""

    model_config = ConfigDict(frozen=True)

    operation: ClassVar["Operation[Any]"]
    """the operation that takes this call"""

    @classmethod
    def read(cls, given: Mapping[str, Any], *, is_request: bool = False) -> Self:
        """Return the call with these fields.

        Args:
            given: the fields by name.
            is_request: whether the error is for a client, so that it repeats no value.

        Raises:
            InvalidInputError: a field is missing, unknown or has an illegal value.
        """
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise as_input_error(error, cls, is_request=is_request) from error


@dataclass(frozen=True)
class Context:
    """Where an operation is carried out, and for whom."""

    store: Store
    settings: Settings
    actor: str
    """name of the token or person, for the audit log"""
    patience_seconds: float
    """longest wait for workers"""
    may_take_long: bool = False
    """whether minutes of work are allowed, as in a command; a serving process must answer within seconds"""
    may_see_groups: bool = True
    """whether answers may hold hashes of groups of single predictions"""


@dataclass(frozen=True)
class CsvFile:
    """An answer as a table."""

    name: str
    content: str


Carry: TypeAlias = Callable[[Context, Any], Answer]


@dataclass(frozen=True)
class Operation(Generic[Answer]):
    """A thing that people do; made by the decorator `operation`."""

    carry_out: Carry[Answer]
    """the function: from a context and a call to the answer"""
    call: type[Call[Answer]]
    answer: Any
    """type of the answer; None: the answer is empty"""
    method: Method
    path: str
    """of the HTTP request; `{name}` is a field of the call"""
    scope: Scope
    status: int
    """of a successful HTTP answer"""
    example: Call[Answer]
    """a call that the test of all operations sends"""
    has_body: bool | Literal["optional"]
    """whether the fields that are no part of the path are in the body, which may be missing if it is optional; else
    they are in the query"""
    location: str | None
    """address of what was made, for the header `Location`; `{name}` is a field of the answer; None: it has none"""
    csv: Callable[[Context, Any], CsvFile] | None
    """the answer as a file, for requests that accept text/csv first; None: there is none"""
    is_strict: bool
    """whether a GET refuses unknown parameters, too, as other methods do"""

    @property
    def name(self) -> str:
        """Name of the function."""
        return self.carry_out.__name__

    @property
    def description(self) -> str:
        """What the operation does."""
        return cleandoc(self.carry_out.__doc__ or "")

    @property
    def path_fields(self) -> tuple[str, ...]:
        """The fields of the call that are parts of the path."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    @property
    def other_fields(self) -> tuple[str, ...]:
        """The fields of the call that are in the query or in the body."""
        return tuple(name for name in self.call.model_fields if name not in self.path_fields)

    @property
    def query_fields(self) -> tuple[str, ...]:
        """The fields of the call that are in the query."""
        return () if self.has_body else self.other_fields

    @property
    def body_fields(self) -> tuple[str, ...]:
        """The fields of the call that are in the body."""
        return self.other_fields if self.has_body else ()

    @property
    def tag(self) -> str:
        """The group of operations in the description of the API: the module of the function."""
        return self.carry_out.__module__.rpartition(".")[2].replace("_", " ")

    def __call__(self, context: Context, call: Call[Answer]) -> Answer:
        """Carry out the operation."""
        return self.carry_out(context, call)


def operation(
    method: Method,
    path: str,
    *,
    scope: Scope,
    example: Call[Any],
    status: int = 200,
    has_body: bool | Literal["optional"] | None = None,
    location: str | None = None,
    csv: Callable[[Context, Any], CsvFile] | None = None,
    is_strict: bool = False,
) -> Callable[[Callable[[Context, Any], Answer]], Operation[Answer]]:
    """Declare that a function is an operation; its annotations name the call and the answer.

    Args:
        method: GET reads, POST changes, PUT replaces, DELETE removes.
        path: of the HTTP request; `{name}` is a field of the call.
        scope: that a token must have.
        example: of a call, sent by a test.
        status: of a successful HTTP answer.
        has_body: whether fields are in the body; None: of POST and PUT they are, if there are any. A body that is
            optional may be missing.
        location: address of what was made; `{name}` is a field of the answer. Jobs: JOB_LOCATION with status 202.
        csv: from the answer to a file, for requests that accept text/csv first.
        is_strict: whether a GET refuses unknown parameters, because an ignored one would do harm.

    Raises:
        TypeError: the annotations of the function and of its call disagree.
    """

    def declare(function: Callable[[Context, Any], Answer]) -> Operation[Answer]:
        hints = get_type_hints(function, include_extras=True)
        call: type[Call[Any]] = hints["call"]
        answer = None if hints["return"] is type(None) else hints["return"]
        parent = cast("type[Call[Any]]", call.__mro__[1])
        if parent.__pydantic_generic_metadata__["args"] != (answer,) or type(example) is not call:
            raise TypeError(
                f"{function.__name__}: expected `class {call.__name__}(Call[{answer}])` and its example."
            )
        declared = Operation(
            function,
            call,
            answer,
            method,
            path,
            scope,
            status,
            example,
            method in ("POST", "PUT") if has_body is None else has_body,
            location,
            csv,
            is_strict,
        )
        call.operation = declared
        return declared

    return declare


def operations_of(module: ModuleType) -> Iterator[Operation[Any]]:
    """The operations that a module declares, in their order."""
    for value in vars(module).values():
        if isinstance(value, Operation):
            declared = cast("Operation[Any]", value)
            if declared.carry_out.__module__ == module.__name__:
                yield declared
