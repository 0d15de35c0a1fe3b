"""Figures of each flow's newest finished audit, computed once for each run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from mm2slo_report.audit_figures import AuditFigures, audit_figures
from mm2slo_report.web.result_cache import Cache

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_core.topology import Flow
    from mm2slo_report.web.scoped_records import Records
    from mm2slo_store.audit_rows import Run

_SECONDS: Final = 3_600.0
_RUNS: Final = 256


class NewestAudits:
    """Queries the newest runs, and reads units and evidence only of new runs. Thread-safe."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._cache: Cache[Mapping[Flow, AuditFigures]] = Cache(seconds=_SECONDS, capacity=_RUNS)

    def figures_of(self, flows: Sequence[Flow]) -> Mapping[Flow, AuditFigures]:
        """Figures of each of *flows* with a finished audit, in that order. Raises UserError."""
        newest = self._records.newest_finished(flows)
        by_run: dict[str, list[Flow]] = {}
        for flow, run in newest.items():
            by_run.setdefault(run.header.id, []).append(flow)
        found: dict[Flow, AuditFigures] = {}
        for run_id, of_run in by_run.items():
            run = newest[of_run[0]]
            # A run changes when it is published again or a later run supersedes units of it.
            key = (run_id, run.finished_at, run.superseded_units, tuple(of_run))
            found.update(self._cache.get(key, partial(self._figures, run, of_run)))
        return {flow: found[flow] for flow in newest}

    def _figures(self, run: Run, flows: Sequence[Flow]) -> Mapping[Flow, AuditFigures]:
        units = self._records.units(run_id=run.header.id)
        evidence = self._records.count_evidence(run.header.id)
        return {flow: audit_figures(run, flow, units, evidence) for flow in flows}
