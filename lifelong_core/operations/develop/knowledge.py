"""The knowledge base: what is known of tasks, whose bundles are imported, and what to transfer from which task."""

from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import Field

from lifelong_core.develop.knowledge.entry import KnowledgeEntry, Scenario
from lifelong_core.entities.access import Scope
from lifelong_core.entities.develop.knowledge import (
    FingerprintAnswer,
    FingerprintDisclosure,
    FingerprintRecord,
    KnowledgeDetails,
    KnowledgeRecord,
    KnowledgeSummary,
    MappedTask,
    RankerAnswer,
    TrustedSigner,
)
from lifelong_core.entities.entity import Entity, schema_of
from lifelong_core.operations.operation import Call, Context, operation
from lifelong_core.store import Store
from lifelong_core.store.knowledge.exchange import read_signing_key
from lifelong_core.store.knowledge.neighbours import CONFIDENCE, rank_neighbours
from lifelong_core.values.errors import InvalidInputError, LifelongError, NotFoundError, UnavailableError
from lifelong_core.values.names import Name

RankingDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of("lifelong_core.develop.ranking.suggestion:Ranking")
]
_ShortText: TypeAlias = Annotated[str, Field(min_length=1, max_length=64)]
_MOST_BYTES = 64 * 2**20
"""Limit of the memory of a fingerprint that is read: those with whole features may be larger."""
_KEY = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
"""A public key (RFC 8032, test 1)."""


@dataclass(frozen=True, kw_only=True)
class KnowledgeList(Entity):
    """A page of the entries by task name, and counts of the whole knowledge base."""

    entries: list[KnowledgeSummary]
    next: str | None
    """`after` of the next page; null: this is the last one"""
    total: int
    """number of entries"""
    fingerprints: int
    transfers: int
    origins: dict[str, int]
    """number of entries by origin"""
    ranker: RankerAnswer | None
    """null: none was fitted yet"""


@dataclass(frozen=True, kw_only=True)
class RemovedEntry(Entity):
    """The entry that was deleted."""

    removed: str


@dataclass(frozen=True, kw_only=True)
class FingerprintList(Entity):
    """The fingerprints of a task."""

    task: str
    fingerprints: list[FingerprintAnswer]


@dataclass(frozen=True, kw_only=True)
class DisclosureList(Entity):
    """What the fingerprints of a task disclose."""

    task: str
    fingerprints: list[FingerprintDisclosure]


@dataclass(frozen=True, kw_only=True)
class TaskMapAnswer(Entity):
    """Tasks in the plane: the closer two are, the smaller the distance of their fingerprints."""

    tasks: list[MappedTask]
    stress: float
    """0 to 1; 0: the map keeps the order of the distances exactly"""


@dataclass(frozen=True, kw_only=True)
class SignerList(Entity):
    """The trusted signers by name."""

    signers: list[TrustedSigner]
    own_public_key: str | None
    """of this installation, for others; null: it has no signing key yet"""


@dataclass(frozen=True, kw_only=True)
class RemovedSigner(Entity):
    """The signer that is not trusted any more; entries of its bundles stay."""

    removed: str


class ListKnowledge(Call[KnowledgeList]):
    """A page of the entries."""

    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    after: Name | None = None
    search: Annotated[str, Field(max_length=64, description="Only tasks whose name contains this text.")] = ""


class ShowKnowledge(Call[KnowledgeDetails]):
    """A task."""

    task: str


class PutKnowledge(Call[KnowledgeDetails]):
    """As KnowledgeEntry, whose card names the task, too; fields that have a default may be left out."""

    task: Name
    card: Annotated[dict[str, Any], schema_of("lifelong_core.develop.knowledge.entry:TaskCard")]
    trainings: list[
        Annotated[dict[str, Any], schema_of("lifelong_core.develop.knowledge.entry:Training")]
    ] = Field(default=[])
    distances: dict[str, dict[str, float]] = Field(default={})
    licence: str | None = None
    contact: str | None = None


class DeleteKnowledge(Call[RemovedEntry]):
    """A task."""

    task: str


class ListFingerprints(Call[FingerprintList]):
    """A task."""

    task: Name


class ListNeighbours(Call[RankingDocument]):
    """The task to train, and what would be transferred to it."""

    task: str
    scenario: Annotated[Scenario, Field(description="What would be transferred.")]
    measure: Annotated[_ShortText, Field(description="Acronym of the measure of the gain.")] = "BA"
    strategy: Annotated[
        _ShortText, Field(description="learned, a method of fingerprints such as VDNA, or a baseline.")
    ] = "learned"
    confidence: Annotated[float, Field(ge=0.5, le=0.99, description="Of the intervals.")] = CONFIDENCE
    limit: Annotated[int | None, Field(ge=1, le=1000, description="Largest number of sources.")] = None


class ListDisclosures(Call[DisclosureList]):
    """A task of the knowledge base."""

    task: Name


class MapTasks(Call[TaskMapAnswer]):
    """Tasks of the knowledge base, and the method of the distances of their fingerprints."""

    tasks: Annotated[list[Name], Field(min_length=1, max_length=100)]
    method: Annotated[
        _ShortText | None, Field(description="Such as VDNA; without it, the first one that knows a distance.")
    ] = None


class ListSigners(Call[SignerList]):
    """Nothing is chosen."""


class NewSigner(Call[TrustedSigner]):
    """A signer to trust: its name here, and its public key of 64 hexadecimal digits."""

    name: Name
    public_key: str


class RemoveSigner(Call[RemovedSigner]):
    """A signer."""

    name: str


@operation("GET", "/v1/admin/knowledge", scope=Scope.READ, example=ListKnowledge(), is_strict=True)
def list_knowledge(context: Context, call: ListKnowledge) -> KnowledgeList:
    """Entries of the knowledge base by task name; `after` is `next` of the previous page."""
    knowledge = context.store.knowledge
    records = knowledge.list(call.limit + 1, call.after, containing=call.search.strip().lower())
    state, ranker = knowledge.state(), context.store.rankers.current()
    page = records[: call.limit]
    return KnowledgeList(
        entries=[KnowledgeSummary.of(record, **_shown(record)) for record in page],
        next=page[-1].task if len(records) > call.limit else None,
        total=state.entries,
        fingerprints=state.fingerprints,
        transfers=state.transfers,
        origins=dict(state.origins),
        ranker=None
        if ranker is None
        else RankerAnswer.of(ranker, is_current=ranker.revision == state.revision),
    )


@operation("GET", "/v1/admin/knowledge/{task}", scope=Scope.READ, example=ShowKnowledge(task="moles"))
def show_knowledge(context: Context, call: ShowKnowledge) -> KnowledgeDetails:
    """One entry: its card, its trainings and its fingerprints."""
    return _details(context.store, context.store.knowledge.get(call.task))


@operation(
    "PUT",
    "/v1/admin/knowledge/{task}",
    scope=Scope.OPERATE,
    example=PutKnowledge(task="nevi", card={"name": "nevi", "classes": 2, "samples": 1000}),
)
def put_knowledge(context: Context, call: PutKnowledge) -> KnowledgeDetails:
    """Store what is known of a task, in the place of its present entry; its fingerprints stay."""
    entry = KnowledgeEntry.from_document(call.model_dump(exclude={"task"}))
    if entry.card.name != call.task:
        raise InvalidInputError(
            f"the entry is of the task {entry.card.name}, the address names {call.task}.", field="card.name"
        )
    return _details(context.store, context.store.knowledge.put(entry, actor=context.actor))


@operation("DELETE", "/v1/admin/knowledge/{task}", scope=Scope.ADMIN, example=DeleteKnowledge(task="nevi"))
def delete_knowledge(context: Context, call: DeleteKnowledge) -> RemovedEntry:
    """Delete an entry with its fingerprints; trainings of other tasks that name it as the source stay."""
    return RemovedEntry(removed=context.store.knowledge.delete(call.task, actor=context.actor).task)


@operation(
    "GET",
    "/v1/admin/tasks/{task}/fingerprints",
    scope=Scope.READ,
    example=ListFingerprints(task="moles"),
)
def list_fingerprints(context: Context, call: ListFingerprints) -> FingerprintList:
    """The fingerprints of a task: one for each kind, extractor and number of bins."""
    try:
        records = context.store.knowledge.get(call.task).fingerprints
    except NotFoundError:
        check_known_task(context.store, call.task)
        records = ()
    return FingerprintList(task=call.task, fingerprints=[FingerprintAnswer.of(record) for record in records])


@operation(
    "GET",
    "/v1/admin/tasks/{task}/neighbours",
    scope=Scope.READ,
    example=ListNeighbours(task="moles", scenario="architecture"),
    is_strict=True,
)
def list_neighbours(context: Context, call: ListNeighbours) -> RankingDocument:
    """Source tasks of the knowledge base for a task, best first, each with its expected gain and the evidence.

    The task is one of the knowledge base; a registered task is one as soon as it has a fingerprint or an entry.
    `declined` says why no source is recommended.
    """
    ranking = rank_neighbours(
        context.store,
        call.task,
        scenario=call.scenario,
        measure=call.measure,
        strategy=call.strategy,
        confidence=call.confidence,
        limit=call.limit,
        build_index=context.may_take_long,
    )
    return ranking.to_document()


@operation(
    "GET",
    "/v1/admin/knowledge/{task}/disclosures",
    scope=Scope.READ,
    example=ListDisclosures(task="moles"),
)
def list_disclosures(context: Context, call: ListDisclosures) -> DisclosureList:
    """What each fingerprint of a task discloses of the images that it was made from."""
    records = context.store.knowledge.get(call.task).fingerprints
    return DisclosureList(
        task=call.task, fingerprints=[_disclosure(context.store, record) for record in records]
    )


@operation("POST", "/v1/admin/knowledge/map", scope=Scope.READ, example=MapTasks(tasks=["moles"]))
def map_tasks(context: Context, call: MapTasks) -> TaskMapAnswer:
    """Some tasks of the knowledge base in the plane, by the ranks of the distances of their fingerprints.

    Status 503 if these have more fingerprints than a serving process reads.
    """
    from lifelong_core.develop.knowledge.task_map import distances_between, draw_task_map, rank_distances
    from lifelong_core.develop.ranking.features import DISTANCES

    base = context.store.knowledge.load()
    methods = DISTANCES if call.method is None else (call.method,)
    known = [distances_between(base, call.tasks, method) for method in methods]
    distances = next((one for one in known if np.isfinite(one[:, 0]).any()), known[0])
    layout = draw_task_map(rank_distances(distances))
    return TaskMapAnswer(
        tasks=[
            MappedTask(task=task, x=float(x), y=float(y))
            for task, (x, y) in zip(call.tasks, layout.positions, strict=True)
        ],
        stress=layout.stress,
    )


@operation("GET", "/v1/admin/signers", scope=Scope.READ, example=ListSigners())
def list_signers(context: Context, call: ListSigners) -> SignerList:  # noqa: ARG001
    """The institutions whose bundles are imported, and the public key of this one."""
    own = read_signing_key(context.settings.resolved_signing_key_file)
    return SignerList(
        signers=context.store.trusted_signers.list(),
        own_public_key=None if own is None else own.public_key,
    )


@operation(
    "POST",
    "/v1/admin/signers",
    scope=Scope.ADMIN,
    status=201,
    example=NewSigner(name="clinic-b", public_key=_KEY),
)
def add_signer(context: Context, call: NewSigner) -> TrustedSigner:
    """Trust a signer. Compare the key with its owner over another channel first, such as the telephone."""
    return context.store.trusted_signers.add(call.name, call.public_key, actor=context.actor)


@operation("DELETE", "/v1/admin/signers/{name}", scope=Scope.ADMIN, example=RemoveSigner(name="clinic-b"))
def remove_signer(context: Context, call: RemoveSigner) -> RemovedSigner:
    """Stop to trust a signer; entries of its bundles stay."""
    return RemovedSigner(removed=context.store.trusted_signers.remove(call.name, actor=context.actor).name)


def check_known_task(store: Store, task: str) -> None:
    """Check that the task is registered, or one of the knowledge base.

    Raises:
        NotFoundError: it is neither.
    """
    try:
        store.tasks.get(task)
    except NotFoundError as error:
        try:
            store.knowledge.get(task)
        except NotFoundError:
            raise error from None


def _shown(record: KnowledgeRecord) -> dict[str, Any]:
    """Facts of the card, and fingerprints; a damaged entry has no facts, so that the list stays readable."""
    try:
        entry, damaged = record.entry, None
    except UnavailableError as error:
        entry, damaged = None, error.message
    card = None if entry is None else entry.card
    return {
        "trainings": None if entry is None else len(entry.trainings),
        "licence": None if entry is None else entry.licence,
        "classes": None if card is None else card.classes,
        "samples": None if card is None else card.samples,
        "modality": None if card is None else card.modality,
        "fingerprints": [FingerprintAnswer.of(one) for one in record.fingerprints],
        "damaged": damaged,
    }


def _details(store: Store, record: KnowledgeRecord) -> KnowledgeDetails:
    shown = _shown(record)
    entry = record.entry if shown["damaged"] is None else None
    return KnowledgeDetails.of(
        record,
        **shown,
        entry=None if entry is None else entry.to_document(),
        measures=[] if entry is None else _measures(store, entry),
    )


def _measures(store: Store, entry: KnowledgeEntry) -> list[str]:
    """The measures of the trainings of a task, else of another one."""
    entries = (entry,) if entry.trainings else store.knowledge.load().entries.values()
    trained = next((one for one in entries if one.trainings), entry)
    return list(dict.fromkeys(name for one in trained.trainings for name in one.performance))


def _disclosure(store: Store, record: FingerprintRecord) -> FingerprintDisclosure:
    from lifelong_core.develop.fingerprints.disclosure import disclosure
    from lifelong_core.develop.fingerprints.kinds import fingerprint_from_bytes

    try:
        content = store.artifacts.get(record.artifact)
        found = disclosure(fingerprint_from_bytes(content, maximum_bytes=_MOST_BYTES))
    except LifelongError as error:
        return FingerprintDisclosure.of(record, statements=[], warning=f"It cannot be read: {error.message}")
    few = "" if found.minimum_samples is None else f": it needs at least {found.minimum_samples:,}"
    warning = f"It describes single images{few}. Do not share it." if found.describes_single_images else None
    return FingerprintDisclosure.of(record, statements=list(found.statements), warning=warning)
