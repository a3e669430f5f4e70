"""Environments: hospitals, scanners or seasons from which predictions come."""

from dataclasses import dataclass

from lifelong_core.entities.access import Scope
from lifelong_core.entities.entity import Entity
from lifelong_core.entities.registry import Environment
from lifelong_core.operations.operation import Call, Context, operation
from lifelong_core.values.names import Name


@dataclass(frozen=True, kw_only=True)
class EnvironmentList(Entity):
    """All environments: their names, sorted, and the same with details."""

    environments: list[str]
    details: list[Environment]


class ListEnvironments(Call[EnvironmentList]):
    """Nothing is chosen."""


class NewEnvironment(Call[Environment]):
    """An environment, such as a hospital, a scanner or a season."""

    name: Name


class DisableEnvironment(Call[Environment]):
    """An environment."""

    name: str


class EnableEnvironment(Call[Environment]):
    """An environment."""

    name: str


class DeleteEnvironment(Call[None]):
    """An environment."""

    name: str


@operation("GET", "/v1/admin/environments", scope=Scope.READ, example=ListEnvironments())
def list_environments(context: Context, call: ListEnvironments) -> EnvironmentList:  # noqa: ARG001
    """All environments, the disabled ones included."""
    environments = context.store.environments.all()
    return EnvironmentList(
        environments=[environment.name for environment in environments], details=environments
    )


@operation(
    "POST",
    "/v1/admin/environments",
    scope=Scope.OPERATE,
    status=201,
    example=NewEnvironment(name="clinic-b"),
)
def add_environment(context: Context, call: NewEnvironment) -> Environment:
    """Add an environment; an existing one is unchanged. Every worker accepts it within a second."""
    return context.store.environments.add(call.name, actor=context.actor)


@operation(
    "POST",
    "/v1/admin/environments/{name}/disable",
    scope=Scope.OPERATE,
    example=DisableEnvironment(name="clinic-b"),
)
def disable_environment(context: Context, call: DisableEnvironment) -> Environment:
    """Disable an environment: predictions in it get status 403; logged predictions stay and may be labelled."""
    return context.store.environments.disable(call.name, actor=context.actor)


@operation(
    "POST",
    "/v1/admin/environments/{name}/enable",
    scope=Scope.OPERATE,
    example=EnableEnvironment(name="clinic-b"),
)
def enable_environment(context: Context, call: EnableEnvironment) -> Environment:
    """Enable an environment: predictions in it are allowed again."""
    return context.store.environments.enable(call.name, actor=context.actor)


@operation(
    "DELETE",
    "/v1/admin/environments/{name}",
    scope=Scope.ADMIN,
    status=204,
    example=DeleteEnvironment(name="clinic-b"),
)
def delete_environment(context: Context, call: DeleteEnvironment) -> None:
    """Delete an environment without logged predictions and published heads; others get status 409: disable them."""
    context.store.environments.delete(call.name, actor=context.actor)
