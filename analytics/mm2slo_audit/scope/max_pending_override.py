"""Overrides `audit.max_pending` for a run (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mm2slo_core.config import Config


def override_max_pending(config: Config, seconds: float) -> Config:
    """*config* with `audit.max_pending` set to *seconds* in every flow."""
    change = {"max_pending": seconds}
    flows = tuple(
        flow.model_copy(update={"audit": flow.audit.model_copy(update=change)})
        for flow in config.flows
    )
    return config.model_copy(update={"flows": flows})
