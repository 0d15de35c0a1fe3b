"""What a run is asked for, and how it is told from one that was asked for something else."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mm2slo_audit.run.time_span import Span
from mm2slo_audit.scope.max_pending_override import override_max_pending
from mm2slo_core.audit.record_sample import Sample

if TYPE_CHECKING:
    from mm2slo_core.config import Config, FlowConfig


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """One run: which flows and topics, which time, how much of it."""

    flows: tuple[str, ...] = ()
    """Labels; none: all flows of the configuration."""
    topics: tuple[str, ...] = ()
    """Names or patterns of source topics; none: what each flow's `audit.topics` says."""
    span: Span = field(default_factory=Span)
    sample: Sample = field(default_factory=lambda: Sample(1.0))
    max_pending: float | None = None
    """Seconds, instead of each flow's `audit.max_pending`."""


def selected(config: Config, options: AuditOptions) -> tuple[FlowConfig, ...]:
    """The flows to audit, as the options want them.

    Raises UserError for a flow that is not configured.
    """
    if options.max_pending is not None:
        config = override_max_pending(config, options.max_pending)
    return config.select(options.flows)


def config_hash(flows: tuple[FlowConfig, ...], options: AuditOptions) -> str:
    """16 hexadecimal digits over all that decides a verdict, but for window and secrets."""
    deciding = {
        "flows": [flow.model_dump(mode="json", exclude={"canary", "freshness"}) for flow in flows],
        "topics": options.topics,
        "sample": [options.sample.rate, options.sample.salt],
    }
    text = json.dumps(deciding, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
