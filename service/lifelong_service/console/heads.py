"""The pages of heads: what serves in one place and why, proposals to decide on, two heads compared, and the forms."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from lifelong_core.deploy.documents import parse_document
from lifelong_core.operations.cycles import ApproveCycle, ListCycles, RejectCycle
from lifelong_core.operations.head_differences import DiffHeads, DiffProposal
from lifelong_core.operations.heads import NewHead, NewPin, RollBack, ShowHeadHistory, Unpin
from lifelong_core.operations.operation import LARGEST, Call
from lifelong_core.values.errors import LifelongError, NotFoundError
from lifelong_core.values.names import Name
from lifelong_service.console.confirmation import decide
from lifelong_service.console.pages import page
from lifelong_service.console.route import FORM, ConsoleRoute, Form
from lifelong_service.guard.access import access, carry_out

PAGE = "/console/heads"
_MOST_PROPOSALS = 3
"""Proposals of a population that are shown; a newer cycle closes those before it, so there are hardly ever two."""
_Version = Annotated[int, Query(ge=1, le=LARGEST)]

router = APIRouter(route_class=ConsoleRoute, include_in_schema=False)


@router.get(f"{PAGE}/{{model}}")
@router.get(f"{PAGE}/{{model}}/{{environment}}")
@access(ShowHeadHistory.operation.scope)
def show_heads(request: Request, model: str, environment: Name | None = None) -> Response:
    """Show what serves in an environment, or as the model's default head, its history, proposals, and the forms."""
    return _heads_page(request, model, environment)


@router.get(f"{PAGE}/{{model}}/{{environment}}/diff")
@access(DiffHeads.operation.scope)
def compare(request: Request, model: str, environment: Name, version: _Version, other: _Version) -> Response:
    """Show how two heads differ, and their decisions about the newest predictions."""
    call = DiffHeads(model=model, version=version, other=other, environment=environment)
    return page(
        request,
        "head_difference",
        difference=carry_out(request, call),
        back=path_of(model, environment),
        model=model,
        environment=environment,
    )


# The address of a form begins with that of its page: a login after a lapsed session leads back there.
@router.post(f"{PAGE}/{{model}}/{{change}}")
@router.post(f"{PAGE}/{{model}}/{{environment}}/{{change}}")
@access(RollBack.operation.scope, media_types=FORM)
def change_heads(
    request: Request, model: str, change: str, form: Form, environment: Name | None = None
) -> Response:
    """Publish, roll back, pin, unpin, approve or reject, as the form of the page says."""
    kind = _CALLS.get(change)
    if kind is None:
        raise NotFoundError(f"there is no form {change[:40]!r}.")

    def refused(error: LifelongError, status: int) -> Response:
        return _heads_page(request, model, environment, status=status, error=error, typed=form)

    return decide(
        request,
        form,
        lambda: _read(kind, model, environment, form),
        back=path_of(model, environment),
        refused=refused,
    )


def path_of(model: str, environment: str | None) -> str:
    """Path of the page of a population's heads; environment None: of the model's default head."""
    return f"{PAGE}/{model}" if environment is None else f"{PAGE}/{model}/{environment}"


def _heads_page(
    request: Request,
    model: str,
    environment: str | None,
    *,
    status: int = 200,
    error: LifelongError | None = None,
    typed: Mapping[str, Any] | None = None,
) -> Response:
    history = carry_out(request, ShowHeadHistory(model=model, environment=environment))
    cycles = []
    if environment is not None:
        wanted = ListCycles(model=model, environment=environment, open_proposals=True, limit=_MOST_PROPOSALS)
        cycles = carry_out(request, wanted).cycles
    return page(
        request,
        "heads",
        status=status,
        history=history,
        path=path_of(model, environment),
        proposals=[(cycle, carry_out(request, DiffProposal(cycle=str(cycle.id)))) for cycle in cycles],
        error=error,
        typed={"reason": "", "pin_reason": "", "head": ""} | dict(typed or {}),
    )


def _read(kind: type[Call[Any]], model: str, environment: str | None, form: FormData) -> Call[Any]:
    """The call of a form, whose fields have the names of the fields of the call."""
    given: dict[str, Any] = {name: str(value).strip() for name, value in form.items() if str(value).strip()}
    given |= {"model": model, "environment": environment}
    if "head" in given:
        given["head"] = parse_document(given["head"], field="head")
    return kind.read({name: given[name] for name in kind.model_fields if name in given}, is_request=True)


_CALLS: dict[str, type[Call[Any]]] = {
    "publish": NewHead,
    "rollback": RollBack,
    "pin": NewPin,
    "unpin": Unpin,
    "approve": ApproveCycle,
    "reject": RejectCycle,
}
"""The call of each form, by the end of its address."""
