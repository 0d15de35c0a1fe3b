"""What the flows want to know of a cluster, asked by the cluster's reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mm2slo_exporter.service.runner import FlowRunner


class FlowInterests:
    """The topics and groups of the flows that are served at the moment of the call."""

    def __init__(self, runners: Callable[[], Iterable[FlowRunner]]) -> None:
        self._runners = runners

    def topics_of(self, alias: str, existing: Iterable[str]) -> Sequence[str]:
        """Topics of flows whose ids and settings matter."""
        held = set(existing)
        wanted: set[str] = set()
        for runner in self._runners():
            flow = runner.flow.flow
            if alias not in {flow.source, flow.target}:
                continue
            pairs = runner.rulebook.plan(runner.clusters()[0].topics).pairs
            names = (p.source if alias == flow.source else p.target for p in pairs)
            wanted.update(name for name in names if name in held)
        return sorted(wanted)

    def groups_of(self, alias: str, existing: Iterable[str]) -> Sequence[str]:
        """Groups of the source that MirrorMaker 2 translates, and their twins on the target."""
        wanted: set[str] = set()
        groups = list(existing)
        for runner in self._runners():
            flow = runner.flow.flow
            synced = alias == flow.target and runner.internals().sync_group_offsets
            if alias == flow.source or synced:
                wanted.update(group for group in groups if runner.rulebook.wants_group(group))
        return sorted(wanted)
