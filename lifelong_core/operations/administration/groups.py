"""Groups: erasure of all logged data of a patient or study."""

from typing import Annotated

from pydantic import ConfigDict, Field

from lifelong_core.entities.access import Scope
from lifelong_core.operations.operation import Call, Context, operation
from lifelong_core.store.lifecycle.erasure import ErasureOutcome
from lifelong_core.store.lifecycle.privacy import group_hashes
from lifelong_core.values.names import MAXIMUM_GROUP_LENGTH


class EraseGroup(Call[ErasureOutcome]):
    """A group key in clear text, as in predictions; it is not logged."""

    model_config = ConfigDict(hide_input_in_errors=True)

    group: Annotated[str, Field(min_length=1, max_length=MAXIMUM_GROUP_LENGTH, repr=False)]


@operation("POST", "/v1/admin/groups/erase", scope=Scope.ADMIN, example=EraseGroup(group="patient-4711"))
def erase_group(context: Context, call: EraseGroup) -> ErasureOutcome:
    """Erase the predictions of a group with their labels, their history and request ids; the answer counts them.

    The search reads the whole log. If it exceeds the time limit, the answer is status 503 while the erasure continues;
    a repeated request erases the rest. A host that lacks a key of the installation answers 503, because it would miss
    predictions.
    """
    store, actor = context.store, context.actor
    keys = store.group_keys.erasing_keys(context.settings.resolved_group_key_file, actor=actor)
    return store.erasure.erase(group_hashes(keys, call.group), actor=actor)
