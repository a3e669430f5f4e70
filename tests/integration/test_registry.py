"""Workers that start while the database is away, and swaps whose arrival is reported."""

import time
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import psutil

from lifelong_core.store import Store
from lifelong_core.store.registry.cache import RegistryCache
from tests import databases, tools
from tests.integration.installation import Installation, install
from tests.integration.processes import Connection, Load, Reply, Service, eventually, running_service

SWAP_SECONDS = 1.0
LOGITS = {"logits": [[1.0, 0.5, -1.0]]}


def ask(connection: Connection) -> Reply:
    return connection.post_json("/v1/logits", LOGITS)


def is_kept(installation: Installation) -> bool:
    """Whether the disk holds what the database holds."""
    settings = installation.settings
    cache = RegistryCache(settings.registry_cache_file, database_url=settings.resolved_database_url)
    with installation.store() as store:
        return cache.revision() == store.revision()


def answered_by(service: Service, count: int) -> list[Reply]:
    """Answers, one by one on connections of their own, until so many workers have given some."""
    replies: list[Reply] = []

    def enough() -> bool:
        with suppress(OSError), service.connect() as connection:
            replies.append(ask(connection))
        return len({reply.worker for reply in replies}) == count

    eventually(enough, f"{count} workers to answer")
    return replies


def kill_workers(service: Service) -> None:
    """SIGKILL to all workers; their parent starts new ones."""
    killed = service.workers()
    for worker in killed:
        worker.kill()
    eventually(
        lambda: (
            {worker.pid for worker in service.workers()}.isdisjoint(worker.pid for worker in killed)
            and len(service.workers()) == len(killed)
        ),
        "the successors",
    )


def running(store: Store, version: int) -> int:
    """How many workers say that this is the default head that they run."""
    model = store.models.get("linear").id
    return sum(
        worker.heads.get((model, None)) == version and not worker.is_lost for worker in store.workers.list()
    )


def swaps_are_acknowledged_in_time(service: Service, store: Store) -> None:
    """Publish heads under load, each when both workers have acknowledged the one before."""
    record = store.heads.get("linear", 1)
    eventually(lambda: running(store, 1) == 2, "two workers on the first head")
    with Load(service, ask, threads=2):
        for _ in range(3):
            version = store.heads.publish("linear", record.head, environment=None, actor="test").version
            published = time.monotonic()
            eventually(lambda version=version: running(store, version) == 2, "both acknowledgements")
            assert time.monotonic() - published < SWAP_SECONDS or not tools.has_deadlines()


def test_workers_that_start_while_the_database_file_is_gone_serve_everything(tmp_path: Path) -> None:
    installation = install(tmp_path)
    file = installation.settings.data_directory / "lifelong.db"
    away = file.with_suffix(".away")
    with running_service(tmp_path, installation.token) as service:
        service.wait_for_workers()
        with installation.store() as store:
            swaps_are_acknowledged_in_time(service, store)
        eventually(lambda: is_kept(installation), "the registry on the disk")
        file.replace(away)
        kill_workers(service)
        replies = answered_by(service, 2)
        assert {reply.status for reply in replies} == {200}, service.last_words()
        assert {reply.body["head_version"] for reply in replies} == {4}
        ready = service.send("GET", "/readyz")
        assert ready.status == 200
        assert ready.body["degraded"]
        with service.connect("ll_wrong") as connection:
            assert ask(connection).status == 503
        away.replace(file)
        answered = [UUID(row["prediction_id"]) for reply in replies for row in reply.body["predictions"]]
        with installation.store() as store:
            eventually(
                lambda: all(store.predictions.get(identifier) is not None for identifier in answered),
                "every answered prediction in the log",
            )
            # The two that were killed stay in the list until they are taken for lost.
            eventually(lambda: len(store.workers.list()) == 4, "the successors in the list")
            assert service.terminate() == 0
            assert len(store.workers.list()) == 2


def test_a_service_that_starts_while_postgresql_is_stopped_serves_what_it_served_last(tmp_path: Path) -> None:
    server = databases.PostgreSQL()
    try:
        url = server.create(migrated=True)
        installation = install(tmp_path, url)
        with running_service(tmp_path, installation.token, database_url=url) as service:
            service.wait_for_workers()
            with installation.store() as store:
                swaps_are_acknowledged_in_time(service, store)
            eventually(lambda: is_kept(installation), "the registry on the disk")
            service.terminate()
        for process in psutil.process_iter(["cmdline"]):
            if str(server.folder) in " ".join(process.info["cmdline"] or []):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        with running_service(tmp_path, installation.token, database_url=url) as service:
            service.wait_until_ready()
            with service.connect() as connection:
                reply = ask(connection)
            assert (reply.status, reply.body["head_version"]) == (200, 4), service.last_words()
    finally:
        server.close()
