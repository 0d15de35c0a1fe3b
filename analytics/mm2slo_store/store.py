"""The results store."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, insert, select, update

from mm2slo_core.user_errors import UserError
from mm2slo_store import audit_queries, exclusions, leases, schema
from mm2slo_store.audit_queries import RunFilter, UnitFilter
from mm2slo_store.audit_rows import RunState
from mm2slo_store.database_errors import raise_user_errors
from mm2slo_store.digest_claims import DigestClaims
from mm2slo_store.engine import engine_for
from mm2slo_store.publication import publish, sorted_unit_rows
from mm2slo_store.row_conversion import failed_row, header_row
from mm2slo_store.schema_version import upgrade_if_older
from mm2slo_store.sli_history import SliHistory
from mm2slo_store.sqlite_file import prepare
from mm2slo_store.store_address import parse_address

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    from sqlalchemy import Connection

    from mm2slo_core.audit.audit_scope import UnitScope, Window
    from mm2slo_core.audit.record_verdict import Verdict
    from mm2slo_core.audit.unit_outcome import UnitOutcome
    from mm2slo_core.objectives.exclusion import Exclusion, Span
    from mm2slo_core.topology import Flow
    from mm2slo_store.audit_rows import (
        AuditRun,
        Completion,
        Published,
        Run,
        RunDirectory,
        RunHeader,
        RunPlace,
        StoredEvidence,
        StoredUnit,
        UnitKey,
    )

LEASE_MS: Final = 60_000
_RENEWALS: Final = 3
"""Renewals per TTL of a lease, of which some may fail."""


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Store(SliHistory, DigestClaims):
    """An open store, from `Store.open`. Thread-safe; processes can share a database.

    Every method raises UserError if the database fails, and rolls back.
    """

    @classmethod
    @contextmanager
    def open(
        cls, url_or_path: str | Path, *, clock: Callable[[], int] = _now_ms
    ) -> Iterator[Store]:
        """Open a store; create it or upgrade its schema if needed.

        *url_or_path* is a path, `sqlite:///PATH`, or `postgresql://USER@HOST/DATABASE` (extra
        `postgres`); *clock* returns epoch ms. Raises UserError, and changes nothing, if the address
        is invalid, or the store is unreachable, read-only, corrupt, of another program or of a
        newer version.
        """
        address = parse_address(url_or_path)
        engine = engine_for(address)
        try:
            with raise_user_errors(address):
                if address.file is not None:
                    prepare(address.file)
                upgrade_if_older(engine, address)
            yield cls(engine, address, clock)
        finally:
            engine.dispose()

    def announce(self, header: RunHeader) -> None:
        """Record that a run has started; it is running until it is published or fails.

        Other running runs without an unexpired lease become failed. Acquire a lease first.
        """
        now = self._clock()
        unexpired = select(schema.leases.c.holder).where(schema.leases.c.expires_at > now)
        is_dead = (schema.runs.c.state == RunState.RUNNING.value) & schema.runs.c.id.not_in(
            unexpired
        )
        with self._writing() as connection:
            connection.execute(
                update(schema.runs)
                .where(is_dead)
                .values(
                    state=RunState.FAILED.value,
                    verdict_line="the run did not report completion; it stored nothing",
                )
            )
            self._replace_run(connection, header, header_row(header, RunState.RUNNING))

    def fail(self, header: RunHeader, why: str) -> None:
        """Record that a run failed; earlier results of its windows remain."""
        with self._writing() as connection:
            self._replace_run(connection, header, failed_row(header, self._clock(), why))

    def publish(self, run: AuditRun) -> Published:
        """Store a finished run and replace earlier results, in one transaction.

        A judged unit replaces units of the same target topic, flow set and window; a unit without a
        verdict replaces only those without one. Runs without units left are deleted. Publishing is
        idempotent.

        Raises LeaseLostError if another run holds an unexpired lease on a judged topic, ValueError
        if *run* has two units of one key.
        """
        units = sorted_unit_rows(run)
        with self._writing() as connection:
            return publish(connection, run, units, self._clock())

    def runs(
        self,
        *,
        flow: Flow | None = None,
        state: RunState | None = None,
        after: RunPlace | None = None,
        limit: int | None = None,
    ) -> tuple[Run, ...]:
        """Runs, newest first, that follow the place *after*."""
        wanted = RunFilter(flow=flow, state=state, after=after)
        with self._reading() as connection:
            return audit_queries.runs(connection, wanted, limit=limit)

    def runs_by_id(self, run_ids: Collection[str]) -> tuple[Run, ...]:
        """The stored runs of *run_ids*, newest first."""
        with self._reading() as connection:
            return audit_queries.runs_by_id(connection, run_ids)

    def count_runs(self, *, flow: Flow | None = None) -> Mapping[RunState, int]:
        """The number of runs by state."""
        with self._reading() as connection:
            return audit_queries.count_runs(connection, RunFilter(flow=flow))

    def newest_finished(self, flows: Collection[Flow]) -> Mapping[Flow, Run]:
        """The newest finished run of each of *flows* that has one, in their order."""
        with self._reading() as connection:
            return audit_queries.newest_finished(connection, flows)

    def run(self, run_id: str) -> Run:
        """One run. Raises UserError for an unknown id."""
        with self._reading() as connection:
            found = audit_queries.runs(connection, RunFilter(run_id=run_id))
        if not found:
            raise UserError(
                f"the store {self.redacted} has no run {run_id}; it may have been replaced"
            )
        return found[0]

    def units(
        self,
        *,
        run_id: str | None = None,
        flow: Flow | None = None,
        target_topic: str | None = None,
        overlapping: Window | None = None,
        judged: bool | None = None,
    ) -> tuple[StoredUnit, ...]:
        """Summaries of units, in order of window, topic and run."""
        wanted = UnitFilter(run_id, None, flow, target_topic, overlapping, judged)
        with self._reading() as connection:
            return audit_queries.units(connection, wanted)

    def outcome(self, run_id: str, unit: int) -> UnitOutcome:
        """The published outcome of a judged unit. Raises UserError for an unknown unit."""
        with self._reading() as connection:
            found = audit_queries.outcome(connection, run_id, unit)
        if found is None:
            raise UserError(f"the store {self.redacted} has no judged unit {unit} of run {run_id}")
        return found

    def evidence(
        self,
        *,
        run_id: str | None = None,
        unit: int | None = None,
        flow: Flow | None = None,
        target_topic: str | None = None,
        verdicts: Collection[Verdict] = (),
        limit: int | None = None,
        start: int = 0,
    ) -> tuple[StoredEvidence, ...]:
        """Anomalies of units, without the first *start*; *verdicts* empty: all."""
        wanted = UnitFilter(run_id, unit, flow, target_topic)
        with self._reading() as connection:
            return audit_queries.evidence(
                connection, wanted, verdicts=verdicts, limit=limit, start=start
            )

    def count_evidence(self, run_id: str) -> Mapping[int, Mapping[Verdict, int]]:
        """The number of anomalies in evidence by unit and verdict."""
        with self._reading() as connection:
            return audit_queries.count_evidence(connection, run_id)

    def directories(self, run_id: str | None = None) -> tuple[RunDirectory, ...]:
        """The run directories that stored runs reference."""
        with self._reading() as connection:
            return audit_queries.directories(connection, run_id)

    def completion(self, flow: Flow, target_topic: str) -> Completion | None:
        """How far a topic is complete; None: never judged. See `extend_completion`."""
        with self._reading() as connection:
            return audit_queries.completion(connection, flow, target_topic)

    def open_scopes(self, key: UnitKey, window: Window) -> tuple[UnitScope, ...]:
        """Scopes of stored units of *window* with lost, overdue or late records.

        Records of these that match now are late.
        """
        with self._reading() as connection:
            return audit_queries.open_scopes(connection, key, window)

    @contextmanager
    def lease(
        self, target_cluster: str, target_topic: str, *, holder: str, ttl_ms: int = LEASE_MS
    ) -> Iterator[leases.Lease]:
        """Hold a target topic for the run *holder*; a thread renews the lease.

        Raises LeaseHeldError at once if another run has an unexpired lease.
        """
        self.acquire(target_cluster, target_topic, holder=holder, ttl_ms=ttl_ms)
        held = leases.Lease(
            lambda: self.renew(target_cluster, target_topic, holder=holder, ttl_ms=ttl_ms),
            ttl_ms / 1000 / _RENEWALS,
        )
        try:
            yield held
        finally:
            held.end()
            self.release(target_cluster, target_topic, holder=holder)

    def acquire(
        self, target_cluster: str, target_topic: str, *, holder: str, ttl_ms: int = LEASE_MS
    ) -> None:
        """Acquire a lease that is free, expired or *holder*'s. Raises LeaseHeldError otherwise."""
        now = self._clock()
        with self._writing() as connection:
            owner, until = leases.acquire(
                connection, target_cluster, target_topic, holder, now=now, ttl_ms=ttl_ms
            )
        if owner != holder:
            raise leases.LeaseHeldError(target_topic, owner, until - now)

    def renew(
        self, target_cluster: str, target_topic: str, *, holder: str, ttl_ms: int = LEASE_MS
    ) -> bool:
        """Renew a lease; False if another has taken it over."""
        with self._writing() as connection:
            return leases.renew(
                connection, target_cluster, target_topic, holder, now=self._clock(), ttl_ms=ttl_ms
            )

    def release(self, target_cluster: str, target_topic: str, *, holder: str) -> bool:
        """Release a lease; False, without effect, if another has taken it over."""
        with self._writing() as connection:
            return leases.release(connection, target_cluster, target_topic, holder)

    def add_exclusion(self, exclusion: Exclusion) -> None:
        """Add an exclusion. Raises UserError if its id exists."""
        with self._writing() as connection:
            added = exclusions.add(connection, exclusion)
        if not added:
            raise UserError(f"the store {self.redacted} already has an exclusion {exclusion.id}")

    def remove_exclusion(self, exclusion_id: str, *, who: str) -> Exclusion:
        """Record that *who* removes it now; returns the updated exclusion.

        Raises UserError if its id is unknown or it is removed already.
        """
        with self._writing() as connection:
            removed = exclusions.remove(connection, exclusion_id, who=who, now=self._clock())
            found = exclusions.find(connection, exclusion_id)
        if found is None:
            raise self._no_exclusion(exclusion_id)
        if not removed:
            raise UserError(
                f"the exclusion {exclusion_id} was already removed by {found.removed_by}"
            )
        return found

    def set_silence(self, exclusion_id: str, silence: str | None) -> None:
        """Set the id of an exclusion's silence. Raises UserError for an unknown exclusion."""
        with self._writing() as connection:
            noted = exclusions.set_silence(connection, exclusion_id, silence)
        if not noted:
            raise self._no_exclusion(exclusion_id)

    def exclusions(
        self, *, flow: Flow | None = None, overlapping: Span | None = None
    ) -> tuple[Exclusion, ...]:
        """Exclusions in order of their start, including removed ones.

        *overlapping* refers to the planned times.
        """
        with self._reading() as connection:
            return exclusions.list_exclusions(connection, flow=flow, overlapping=overlapping)

    def _no_exclusion(self, exclusion_id: str) -> UserError:
        return UserError(
            f"the store {self.redacted} has no exclusion {exclusion_id}; "
            "`mm2slo exclude list --all` lists all"
        )

    @staticmethod
    def _replace_run(connection: Connection, header: RunHeader, row: dict[str, object]) -> None:
        connection.execute(delete(schema.runs).where(schema.runs.c.id == header.id))
        connection.execute(insert(schema.runs), row)
