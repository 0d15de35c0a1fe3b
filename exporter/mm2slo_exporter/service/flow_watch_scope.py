"""The topics and groups that a cluster's reader reads for the running flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from mm2slo_exporter.service.flow_runner import FlowRunner


class FlowWatchScope:
    """The topics and groups of the flows that are running at the time of the call."""

    def __init__(
        self,
        runners: Callable[[], Iterable[FlowRunner]],
        sharing: Callable[[str], AbstractSet[str]] = lambda alias: {alias},
    ) -> None:
        """*sharing*: the aliases of a cluster, by one of them."""
        self._runners = runners
        self._sharing = sharing

    def topics_of(self, alias: str, existing: Iterable[str]) -> Sequence[str]:
        """Topics of the cluster's flows."""
        existing_topics, aliases = set(existing), self._sharing(alias)
        wanted: set[str] = set()
        for runner in self._runners():
            flow = runner.flow.flow
            if aliases.isdisjoint({flow.source, flow.target}):
                continue
            running = runner.internals().connectors
            pairs = runner.policies.plan(runner.clusters()[0].topics, running).pairs
            if flow.source in aliases:
                wanted.update(pair.source for pair in pairs)
            if flow.target in aliases:
                wanted.update(pair.target for pair in pairs)
        return sorted(wanted & existing_topics)

    def topics_changed(self, alias: str) -> None:
        """Let the flows of the cluster read their topics at once."""
        aliases = self._sharing(alias)
        for runner in self._runners():
            if not aliases.isdisjoint({runner.flow.flow.source, runner.flow.flow.target}):
                runner.read_soon()

    def groups_of(self, alias: str, existing: Iterable[str]) -> Sequence[str]:
        """Groups that MirrorMaker 2 translates, on both clusters: where they would resume."""
        wanted: set[str] = set()
        existing_groups, aliases = set(existing), self._sharing(alias)
        for runner in self._runners():
            if aliases.isdisjoint({runner.flow.flow.source, runner.flow.flow.target}):
                continue
            groups = existing_groups | runner.internals().checkpoints.keys()
            wanted.update(filter(runner.policies.wants_group, groups))
        return sorted(wanted)
