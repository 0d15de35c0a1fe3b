"""Panels that grafanalib supports only in the format of Grafana 7, in the current format."""

from __future__ import annotations

import attr
from grafanalib.core import Panel

from mm2slo_dashboards.grafana.field_overrides import Json  # noqa: TC001 - attrs reads annotations


@attr.s
class ModernPanel(Panel):  # type: ignore[misc] # grafanalib has no types
    """A panel of *kind* with the given options and field defaults."""

    kind: str = attr.ib(default="")
    options: Json = attr.ib(factory=dict)
    defaults: Json = attr.ib(factory=dict)
    overrides: list[Json] = attr.ib(factory=list)

    def to_json_data(self) -> Json:
        """The panel in grafanalib's JSON."""
        found: Json = self.panel_json(
            {
                "type": self.kind,
                "options": self.options,
                "fieldConfig": {"defaults": self.defaults, "overrides": self.overrides},
            }
        )
        return found
