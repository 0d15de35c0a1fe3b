"""What a parser knows beyond the lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING

from mm2slo_core.redaction import Redactor
from mm2slo_logship.events.thread_flows import ThreadFlows

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ParserSettings:
    """Settings of the parsers of one process; all of them share `redactor` and `thread_flows`.

    `flow` is the flow of every line, for a worker with one flow; `flows` are the known flows, any
    if empty; `connector_flows` maps the connectors of a Connect cluster to their flows; `time_zone`
    is that of times without one, as log4j writes them.
    """

    service: str = "mm2-worker"
    env: str = ""
    flow: str = ""
    flows: frozenset[str] = frozenset()
    connector_flows: Mapping[str, str] = field(default_factory=dict)
    time_zone: tzinfo = UTC
    redactor: Redactor = field(default_factory=Redactor)
    thread_flows: ThreadFlows = field(default_factory=ThreadFlows)
    constants: Mapping[str, object] = field(init=False)
    """Fields that every event has."""

    def __post_init__(self) -> None:
        constants = {"service": self.service} | ({"env": self.env} if self.env else {})
        object.__setattr__(self, "constants", constants)
