"""Stored audits and planned maintenance as a token that is limited to some flows sees them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from mm2slo_report.web.problem_details import ProblemError
from mm2slo_store.audit_rows import RunPlace, RunState

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from mm2slo_core.audit.record_verdict import Verdict
    from mm2slo_core.objectives.exclusion import Exclusion
    from mm2slo_core.topology import Flow
    from mm2slo_store import Store
    from mm2slo_store.audit_rows import Run, StoredEvidence, StoredUnit

_BATCH: Final = 500
HIDDEN_NAME: Final = "another user"
HIDDEN_VERDICT: Final = "not shown: this run also audited other flows"


class ScopedRecords:
    """The *records* of *flows*, of all that are *configured*.

    A run of other flows does not exist, and one that audited others too has neither their names nor
    its verdict on all. Names of others than the *caller* are hidden. A topic that several flows
    feed has one count for all of them.
    """

    def __init__(
        self, records: Records, flows: Collection[Flow], configured: Collection[Flow], caller: str
    ) -> None:
        self._records = records
        self._caller = caller
        self._flows = frozenset(flows)
        self._others = frozenset(configured) - self._flows

    def runs(
        self,
        *,
        flow: Flow | None = None,
        after: RunPlace | None = None,
        limit: int | None = None,
    ) -> Sequence[Run]:
        return tuple(islice(self._visible(self._all_runs(flow, after)), limit))

    def runs_by_id(self, run_ids: Collection[str]) -> Sequence[Run]:
        return tuple(self._visible(self._records.runs_by_id(run_ids)))

    def count_runs(self, *, flow: Flow | None = None) -> Mapping[RunState, int]:
        found = Counter(each.state for each in self.runs(flow=flow))
        return {state: found[state] for state in RunState}

    def newest_finished(self, flows: Collection[Flow]) -> Mapping[Flow, Run]:
        newest = self._records.newest_finished([each for each in flows if each in self._flows])
        return {flow: self._narrowed(run) for flow, run in newest.items()}

    def units(self, *, run_id: str | None = None) -> Sequence[StoredUnit]:
        found = self._records.units(run_id=run_id)
        return tuple(
            unit for unit in found if not self._flows.isdisjoint(each.flow for each in unit.flows)
        )

    def evidence(
        self,
        *,
        run_id: str | None = None,
        verdicts: Collection[Verdict] = (),
        limit: int | None = None,
        start: int = 0,
    ) -> Sequence[StoredEvidence]:
        found = (each for each in self._all_evidence(run_id, verdicts) if each.flow in self._flows)
        return tuple(islice(found, start, None if limit is None else start + limit))

    def count_evidence(self, run_id: str) -> Mapping[int, Mapping[Verdict, int]]:
        return self._records.count_evidence(run_id)

    def exclusions(self, *, flow: Flow | None = None) -> Sequence[Exclusion]:
        """Names only the token's flows if others are excluded too."""
        found = []
        for each in self._records.exclusions(flow=flow):
            own = sorted(flow.label for flow in self._flows if each.covers(flow))
            if own:
                flows = tuple(own) if self._affects_others(each) else each.flows
                found.append(replace(self._without_names(each), flows=flows))
        return tuple(found)

    def add_exclusion(self, exclusion: Exclusion) -> None:
        self._records.add_exclusion(exclusion)

    def remove_exclusion(self, exclusion_id: str, *, who: str) -> Exclusion:
        """Raises ProblemError (403) if it excludes other flows too."""
        for each in self._records.exclusions():
            if each.id == exclusion_id and self._affects_others(each):
                raise ProblemError(
                    HTTPStatus.FORBIDDEN,
                    "scope",
                    f"{exclusion_id!r} excludes other flows too: remove it with a token for all "
                    "of its flows",
                )
        return self._without_names(self._records.remove_exclusion(exclusion_id, who=who))

    def _without_names(self, exclusion: Exclusion) -> Exclusion:
        known = (self._caller, None)
        return replace(
            exclusion,
            who=exclusion.who if exclusion.who in known else HIDDEN_NAME,
            removed_by=exclusion.removed_by if exclusion.removed_by in known else HIDDEN_NAME,
        )

    def _affects_others(self, exclusion: Exclusion) -> bool:
        return any(exclusion.covers(flow) for flow in self._others)

    def _visible(self, runs: Iterable[Run]) -> Iterator[Run]:
        for each in runs:
            if not self._flows.isdisjoint(each.header.flows):
                yield self._narrowed(each)

    def _narrowed(self, run: Run) -> Run:
        own = tuple(each for each in run.header.flows if each in self._flows)
        if own == run.header.flows:
            return run
        verdict = None if run.verdict_line is None else HIDDEN_VERDICT
        header = replace(run.header, flows=own)
        return replace(run, header=header, exit_code=None, verdict_line=verdict, bytes_read=None)

    def _all_runs(self, flow: Flow | None, after: RunPlace | None) -> Iterator[Run]:
        """In batches: the store cannot filter by several flows."""
        while batch := self._records.runs(flow=flow, after=after, limit=_BATCH):
            yield from batch
            after = RunPlace(batch[-1].header.started_at, batch[-1].header.id)

    def _all_evidence(
        self, run_id: str | None, verdicts: Collection[Verdict]
    ) -> Iterator[StoredEvidence]:
        start = 0
        while batch := self._records.evidence(
            run_id=run_id, verdicts=verdicts, start=start, limit=_BATCH
        ):
            yield from batch
            start += len(batch)


Records: TypeAlias = "Store | ScopedRecords"
"""Stored audits and planned maintenance. Every method raises UserError on database errors."""
