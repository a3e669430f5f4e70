"""The prediction log: written once per micro-batch, before the answers are sent; read in commit order or as windows."""

from collections.abc import Collection, Sequence
from datetime import date, datetime
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.store.engine.columns import Row, unpack_logit_rows
from lifelong_core.store.engine.statements import Repository, batched
from lifelong_core.store.log.commit_order import read_log_position, rows_behind, rows_of
from lifelong_core.store.log.delivery import DeliveryOutcome, deliver_entries
from lifelong_core.store.log.identifiers import first_id_at, is_prediction_id, logged_on
from lifelong_core.store.log.partitions import ensure_partitions
from lifelong_core.store.log.records import (
    LogEntry,
    LogPosition,
    Prediction,
    RequestKey,
    StoredRequest,
    Window,
    group_keys,
    prediction_of,
    split_ids,
    usable_rows,
)
from lifelong_core.store.log.writing import insert_entries, insert_entries_on_driver
from lifelong_core.store.schema import tables

_log = tables.predictions
_requests = tables.requests


class Predictions(Repository):
    """Appends to and reads from the log."""

    def append(self, entries: Sequence[LogEntry]) -> tuple[bool, ...]:
        """Write and commit the predictions of a micro-batch. They survive the failures of the database's `durability`:
        the end of any process, or a power failure, too.

        Returns:
            For each entry whether it was written. False: a request with its key is in the log, or came earlier in
            `entries`; nothing of the entry was written, and `request(key)` returns the first answer.

        Raises:
            InvalidInputError: an entry has no predictions, its logits are not one row of finite numbers, or its
                request id is longer than 200 characters.
            ConflictError: a prediction id is in the log already.
            UnavailableError: the database does not answer; whether the batch was written is then unknown.
        """
        if not entries:
            return ()
        if not self._database.is_postgresql:
            with self._database.write_on_driver() as driver:
                return insert_entries_on_driver(driver, entries)
        with self._database.write_at_once() as connection:
            return insert_entries(connection, entries)

    def deliver(self, entries: Sequence[LogEntry]) -> DeliveryOutcome:
        """Write the entries of a spool; idempotent. Missing environments are created.

        Predictions are left out if they are in the log, if their group was erased after they were made, or if their
        request was answered before (same key, same body). A request whose key belongs to another body is logged
        without its key.

        Raises:
            InvalidInputError: an entry holds a value that is not valid for the log.
            UnavailableError: the database does not answer; whether the entries were written is then unknown.
        """
        with self._database.write() as connection:
            return deliver_entries(connection, entries)

    def get(self, prediction_id: UUID) -> Prediction | None:
        """Return the prediction with that id; None if it is not in the log."""
        with self._database.read() as connection:
            return _by_ids(connection, [prediction_id]).get(prediction_id)

    def with_ids(self, prediction_ids: Collection[UUID]) -> dict[UUID, Prediction]:
        """Return the predictions with these ids that are in the log."""
        with self._database.read() as connection:
            return _by_ids(connection, list(prediction_ids))

    def request(self, key: RequestKey) -> StoredRequest | None:
        """Return the logged request with that key; None: there is none."""
        return self.requests([key]).get(key)

    def requests(self, keys: Collection[RequestKey]) -> dict[RequestKey, StoredRequest]:
        """Return the logged requests with these keys, by one query for most micro-batches."""
        wanted = set(keys)
        rows: list[Row] = []
        with self._database.read() as connection:
            for some in batched(list(wanted)):
                # One condition per column: for tuples of columns SQLite would scan the table.
                query = sa.select(_requests).where(
                    _requests.c.model_id.in_({key.model_id for key in some}),
                    _requests.c.request_id.in_({key.request_id for key in some}),
                )
                rows += [row for row in connection.execute(query) if _key_of(row) in wanted]
            return {stored.key: stored for stored in _stored_requests(connection, rows)}

    def find_request(self, model_id: int, request_id: str) -> list[StoredRequest]:
        """Return the requests with that id in all environments, sorted by environment."""
        query = sa.select(_requests).where(
            _requests.c.model_id == model_id, _requests.c.request_id == request_id
        )
        with self._database.read() as connection:
            found = _stored_requests(connection, connection.execute(query).all())
        return sorted(found, key=lambda request: request.key.environment)

    def log_position(self) -> int:
        """Return the log position: all rows of smaller commit order are visible, and none will follow."""
        with self._database.read() as connection:
            return read_log_position(connection)

    def window(
        self,
        model_id: int,
        environment: str,
        *,
        limit: int,
        since: datetime,
        until: datetime | None = None,
        log_position: int | None = None,
        classes: int | None = None,
    ) -> Window:
        """Return the newest predictions of a population made at or after `since`, at most `limit`, oldest first.

        Args:
            model_id: of the model.
            environment: its name.
            limit: largest number of predictions, quarantined ones included.
            since: aware; earlier predictions are left out.
            until: aware, exclusive; later predictions are left out. None: there is no such time.
            log_position: that of an earlier window, to read the same window again; None: the present one.
            classes: number of classes of the model; unusable rows are left out and counted (see `quarantine`).
                None: no row is left out.

        Raises:
            InvalidInputError: without `classes`, rows differ in their number of logits.
        """
        first = first_id_at(since)
        with self._database.read() as connection:
            position = read_log_position(connection) if log_position is None else log_position
            query = (
                sa.select(_log.c.id, _log.c.logits, _log.c.group_hash)
                .where(_log.c.model_id == model_id, _log.c.environment == environment, _log.c.id >= first)
                .where(_log.c.logged_on >= logged_on(first), _log.c.commit_order < position)
                .order_by(_log.c.id.desc())
                .limit(limit)
            )
            if until is not None:
                last = first_id_at(until)
                query = query.where(_log.c.id < last, _log.c.logged_on <= logged_on(last))
            rows = connection.execute(query).all()[::-1]
        return _window_of(rows, position, classes)

    def read_since(
        self, position: LogPosition | None, *, limit: int
    ) -> tuple[list[Prediction], LogPosition | None]:
        """Return the next rows of the log in commit order, over all models, and the position behind them.

        A reader that starts at None and continues from each returned position gets every row exactly once.

        Args:
            position: as returned by the previous call; None: the beginning.
            limit: largest number of rows.

        Returns:
            The rows and the new position; no rows and the same position if there are no new rows.
        """
        with self._database.read() as connection:
            query = sa.select(_log).where(_log.c.commit_order < read_log_position(connection))
            if position is not None:
                query = query.where(rows_behind(position.commit_order, position.id))
            rows = connection.execute(query.order_by(_log.c.commit_order, _log.c.id).limit(limit)).all()
        if rows:
            position = LogPosition(rows[-1].commit_order, rows[-1].id)
        return [prediction_of(row) for row in rows], position

    def count_between(
        self, model_id: int, environment: str, log_position_from: int, log_position_to: int
    ) -> int:
        """Count the predictions of a population committed between two log positions."""
        query = (
            sa.select(sa.func.count())
            .select_from(_log)
            .where(*_appeared(model_id, environment, log_position_from, log_position_to))
        )
        with self._database.read() as connection:
            return connection.execute(query).scalar_one()

    def between(
        self,
        model_id: int,
        environment: str,
        log_position_from: int,
        log_position_to: int,
        *,
        limit: int,
        classes: int | None = None,
    ) -> Window:
        """Return the predictions of a population committed between two log positions, in commit order.

        Late predictions are included: reading from each log position to the next returns every prediction once.

        Args:
            model_id: of the model.
            environment: its name.
            log_position_from: first commit order, inclusive.
            log_position_to: last commit order, exclusive.
            limit: largest number of predictions, quarantined ones included; of more, the last committed ones are read.
            classes: as for `window`.
        """
        query = (
            sa.select(_log.c.id, _log.c.logits, _log.c.group_hash)
            .where(*_appeared(model_id, environment, log_position_from, log_position_to))
            .order_by(_log.c.commit_order.desc(), _log.c.id.desc())
            .limit(limit)
        )
        rows = self._rows(query)[::-1]
        return _window_of(rows, log_position_to, classes)

    def populations(self, since: datetime) -> list[tuple[int, str]]:
        """Return every (model id, existing environment) with a prediction made at or after `since`, sorted."""
        first = first_id_at(since)
        models, environments = tables.models.c.id, tables.environments.c.name
        # One index lookup per pair, where DISTINCT would read the whole log; with LIMIT, since PostgreSQL would turn
        # EXISTS into a join that reads the whole log, too.
        newest = (
            sa.select(_log.c.id)
            .where(_log.c.model_id == models, _log.c.environment == environments, _log.c.id >= first)
            .where(_log.c.logged_on >= logged_on(first))
            .correlate(tables.models, tables.environments)
            .order_by(_log.c.id.desc())
            .limit(1)
            .scalar_subquery()
        )
        query = sa.select(models, environments).select_from(
            tables.models.join(tables.environments, sa.true())
        )
        # Rows that a worker logged during the removal of its model belong to no population.
        query = query.where(tables.models.c.removed_at.is_(None))
        return sorted((row[0], row[1]) for row in self._rows(query.where(newest.is_not(None))))

    def ensure_partitions(self, today: date) -> tuple[date, ...]:
        """Create missing partitions for today and the week ahead; return their days. SQLite has no partitions."""
        return ensure_partitions(self._database, today)


def _appeared(
    model_id: int, environment: str, log_position_from: int, log_position_to: int
) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        _log.c.commit_order >= log_position_from,
        _log.c.commit_order < log_position_to,
        *rows_of(model_id, environment),
    )


def _window_of(rows: Sequence[Row], log_position: int, classes: int | None) -> Window:
    blobs = [row.logits for row in rows]
    quarantined = 0
    if classes is None:
        logits = unpack_logit_rows(blobs, classes=len(blobs[0]) // 4 if blobs else 0)
    else:
        logits, is_usable = usable_rows(blobs, classes=classes)
        quarantined = len(rows) - len(logits)
        if quarantined:
            rows = [row for row, usable in zip(rows, is_usable, strict=True) if usable]
    groups = [row.group_hash for row in rows]
    ids = tuple(row.id for row in rows)
    has_groups = any(group is not None for group in groups)
    return Window(ids, logits, group_keys(ids, groups) if has_groups else None, log_position, quarantined)


def _key_of(row: Row) -> RequestKey:
    return RequestKey(row.model_id, row.environment, row.request_id)


def _stored_requests(connection: sa.Connection, rows: Sequence[Row]) -> list[StoredRequest]:
    answered = [split_ids(row.prediction_ids) for row in rows]
    found = _by_ids(connection, [one for ids in answered for one in ids])
    return [
        StoredRequest(_key_of(row), row.body_digest, tuple(found[one] for one in ids if one in found))
        for row, ids in zip(rows, answered, strict=True)
    ]


def _by_ids(connection: sa.Connection, ids: Sequence[UUID]) -> dict[UUID, Prediction]:
    predictions: dict[UUID, Prediction] = {}
    ids = [one for one in ids if is_prediction_id(one)]
    for some in batched(ids):
        query = sa.select(_log).where(
            _log.c.logged_on.in_({logged_on(one) for one in some}), _log.c.id.in_(some)
        )
        predictions |= {row.id: prediction_of(row) for row in connection.execute(query)}
    return predictions
