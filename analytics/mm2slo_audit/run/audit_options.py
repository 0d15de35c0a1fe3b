"""Options of a run, and their hash."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mm2slo_audit.run.time_span import Span
from mm2slo_audit.scope.max_pending_override import override_max_pending
from mm2slo_core.audit.conclusion import DuplicateLimit
from mm2slo_core.audit.record_sample import Sample

if TYPE_CHECKING:
    from mm2slo_core.config import Config, FlowConfig


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """Flows, topics, time and sample of one run."""

    flows: tuple[str, ...] = ()
    """Labels; empty: all configured flows."""
    topics: tuple[str, ...] = ()
    """Names or patterns of source topics; empty: each flow's `audit.topics`."""
    span: Span = field(default_factory=Span)
    sample: Sample = field(default_factory=lambda: Sample(1.0))
    max_pending: float | None = None
    """Seconds, instead of each flow's `audit.max_pending`."""
    duplicates: DuplicateLimit = field(default_factory=DuplicateLimit)
    wait: bool = False
    """Whether to wait until the leases of runs that died have expired."""


def select_flows(config: Config, options: AuditOptions) -> tuple[FlowConfig, ...]:
    """The flows to audit, with the options applied. Raises UserError for an unknown flow."""
    if options.max_pending is not None:
        config = override_max_pending(config, options.max_pending)
    return config.select(options.flows)


_WITHOUT_EFFECT = {"canary", "freshness", "kafka_version"}


def hash_options(flows: tuple[FlowConfig, ...], options: AuditOptions) -> str:
    """Hash (16 hexadecimal digits) of the settings that affect verdicts, without window."""
    deciding = {
        "flows": [flow.model_dump(mode="json", exclude=_WITHOUT_EFFECT) for flow in flows],
        "topics": options.topics,
        "sample": [options.sample.rate, options.sample.salt],
    }
    text = json.dumps(deciding, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
