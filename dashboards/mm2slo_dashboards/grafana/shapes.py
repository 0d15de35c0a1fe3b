"""Panels that grafanalib has only in the shape of Grafana 7, written as Grafana reads them now."""

from __future__ import annotations

import attr
from grafanalib.core import Panel

from mm2slo_dashboards.grafana.fields import Json  # noqa: TC001 - attrs reads annotations


@attr.s
class ModernPanel(Panel):  # type: ignore[misc] # grafanalib has no types
    """A panel of *kind* whose options and defaults of fields stand as given."""

    kind: str = attr.ib(default="")
    options: Json = attr.ib(factory=dict)
    defaults: Json = attr.ib(factory=dict)
    overrides: list[Json] = attr.ib(factory=list)

    def to_json_data(self) -> Json:
        """The panel as grafanalib's own give it."""
        found: Json = self.panel_json(
            {
                "type": self.kind,
                "options": self.options,
                "fieldConfig": {"defaults": self.defaults, "overrides": self.overrides},
            }
        )
        return found
