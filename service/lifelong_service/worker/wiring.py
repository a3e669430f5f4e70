"""The parts of a worker, built in the order of their dependencies. Nothing is opened or started here."""

from dataclasses import dataclass
from functools import partial

from lifelong_core.configuration.serving_plan import serving_plan
from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.tracing import span
from lifelong_core.store.access.audit_chain import AnchorFile
from lifelong_core.store.registry.cache import RegistryCache
from lifelong_service import metrics
from lifelong_service.clients.authentication import Authenticator
from lifelong_service.clients.console_sessions import ConsoleSessions
from lifelong_service.clients.limits import LoginLimiter, TokenLimiter
from lifelong_service.clients.refused_requests import RefusalCounter
from lifelong_service.clients.sharing import BodyBudget
from lifelong_service.decoding.decoder import ImageDecoder
from lifelong_service.decoding.process import Turns, usual_number
from lifelong_service.graphs.captures import DEVICE
from lifelong_service.graphs.limits import RunLimit
from lifelong_service.prediction.batch_pipeline import BatchPipeline
from lifelong_service.prediction.micro_batcher import MicroBatcher, Prepare
from lifelong_service.prediction.prediction_log import PredictionLog
from lifelong_service.prediction.requests import PredictionRequest
from lifelong_service.prediction.routing import Router
from lifelong_service.prediction.shadow import Shadow, ShadowQueue
from lifelong_service.prediction.traced_pipeline import TracedPipeline
from lifelong_service.process.draining import stop_worker
from lifelong_service.process.launch import parent_process
from lifelong_service.worker.group_keyring import GroupKeyring
from lifelong_service.worker.model_loader import HangingModels, ModelLoader
from lifelong_service.worker.periodic_tasks import PeriodicTasks
from lifelong_service.worker.registry_poller import RegistryPoller
from lifelong_service.worker.serving_state import ServingState
from lifelong_service.worker.store_connection import RegistrySource, StoreConnection, TokenFinder
from lifelong_service.worker.tasks import AuditTask, CacheKeeper, Heartbeat


@dataclass(frozen=True)
class WorkerParts:
    """The parts of one worker; each class documents its own."""

    serving: ServingState
    connection: StoreConnection
    group_keyring: GroupKeyring
    run_limit: RunLimit
    models: ModelLoader
    log: PredictionLog
    batcher: MicroBatcher[PredictionRequest, bytes]
    shadow: Shadow
    decoder: ImageDecoder
    token_limiter: TokenLimiter
    login_limiter: LoginLimiter
    body_budget: BodyBudget
    refusals: RefusalCounter
    authenticator: Authenticator
    console_sessions: ConsoleSessions
    audit: AuditTask
    periodic: PeriodicTasks
    poller: RegistryPoller


def build_parts(settings: Settings) -> WorkerParts:
    """Build the parts of a worker from the settings of its process."""
    serving = ServingState()
    connection = StoreConnection(settings)
    group_keyring = GroupKeyring(settings.resolved_group_key_file, serving.group_keys)
    hanging = HangingModels(settings.hanging_models_file, maximum=settings.maximum_graph_hangs)
    # A request ends after this time, so a longer run of a graph is useless.
    run_limit = RunLimit(settings.request_timeout_seconds, hanging.note)
    models = ModelLoader(settings, serving, connection.get, run_limit, hanging)
    log = PredictionLog(settings, store=connection.get, environments=serving.environments)
    authenticator = Authenticator(serving.tokens, TokenFinder(connection, serving).find)
    console_sessions = ConsoleSessions(connection.get, serving.outage, settings)
    refusals = RefusalCounter()
    audit = AuditTask(connection.get, serving.is_current, refusals, AnchorFile(settings.audit_anchor_file))
    cache = RegistryCache(settings.registry_cache_file, database_url=settings.resolved_database_url)
    periodic = PeriodicTasks(
        cache=CacheKeeper(cache, serving.is_current),
        heartbeat=Heartbeat(
            connection.get,
            serving.is_current,
            serving.loads,
            authenticator.take_uses,
            console_sessions.note_uses,
        ),
        audit=audit,
        is_current=serving.is_current,
    )
    router = Router()
    decoder = _build_decoder(settings, router)
    shadow_queue = ShadowQueue(
        capacity=settings.shadow_queue_capacity, maximum_bytes=settings.maximum_shadow_queue_bytes
    )
    is_traced = settings.tracing_url is not None
    prepare = partial(_decoded, decoder, serving)
    pipeline = (TracedPipeline if is_traced else BatchPipeline)(
        settings,
        log=log,
        snapshot=serving.current,
        group_key=group_keyring.current,
        router=router,
        shadows=shadow_queue.offer,
    )
    return WorkerParts(
        serving=serving,
        connection=connection,
        group_keyring=group_keyring,
        run_limit=run_limit,
        models=models,
        log=log,
        batcher=_build_batcher(settings, pipeline, partial(_traced, prepare) if is_traced else prepare),
        shadow=Shadow(
            shadow_queue,
            snapshot=serving.current,
            decode=decoder.decode_now,
            # As from a spool: the group may have been erased since the answer.
            write=lambda entries: connection.get().predictions.deliver(entries),
            outage=lambda: log.outage,
            router=router,
        ),
        decoder=decoder,
        token_limiter=TokenLimiter(settings.limits_for),
        login_limiter=LoginLimiter(settings.failed_logins_per_minute),
        body_budget=BodyBudget(maximum_bytes=settings.maximum_held_body_bytes),
        refusals=refusals,
        authenticator=authenticator,
        console_sessions=console_sessions,
        audit=audit,
        periodic=periodic,
        poller=RegistryPoller(
            RegistrySource(connection, group_keyring).fetch,
            models.load,
            serving=serving,
            seconds=settings.registry_poll_seconds,
            recall=cache.load,
            changes=connection.changes,
            published=periodic.offer,
            stop=stop_worker,
            fault=lambda: DEVICE.failure or run_limit.failure,
            quarantined=hanging.quarantined,
            parent=parent_process(),
        ),
    )


def _build_batcher(
    settings: Settings, pipeline: BatchPipeline, prepare: Prepare[PredictionRequest]
) -> MicroBatcher[PredictionRequest, bytes]:
    return MicroBatcher(
        pipeline,
        capacity=settings.queue_capacity,
        maximum_samples=settings.maximum_batch_size,
        maximum_wait_seconds=settings.maximum_wait_seconds,
        maximum_batch_seconds=settings.maximum_batch_seconds,
        prepare=prepare,
        preparing_threads=serving_plan(settings).decoding_threads,
        watch=metrics.QUEUE_LENGTH.set,
    )


def _decoded(
    decoder: ImageDecoder, serving: ServingState, request: PredictionRequest
) -> tuple[PredictionRequest, int]:
    prepared = decoder.decode_cheap(request, serving.current())
    return prepared, prepared.weight


def _traced(prepare: Prepare[PredictionRequest], request: PredictionRequest) -> tuple[PredictionRequest, int]:
    with span("decode", parent=request.context.trace):
        return prepare(request)


def _build_decoder(settings: Settings, router: Router) -> ImageDecoder:
    # The spool folder is on a local disk that the workers of this machine share.
    turns = Turns(settings.resolved_spool_directory, number=usual_number())
    return ImageDecoder(maximum_pixels=settings.maximum_image_pixels, turns=turns, route=router.route)
