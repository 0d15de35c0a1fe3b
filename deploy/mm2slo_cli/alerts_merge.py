"""Merges the generated fragment with the configuration of an existing Alertmanager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import yaml

from mm2slo_alerts.alertmanager.fragment import merged, shadowed
from mm2slo_alerts.preview.sample_alerts import sample
from mm2slo_alerts.rule_model import AlertRule
from mm2slo_alerts.rule_text import yaml_text
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from mm2slo_alerts.rule_model import Group

MERGED: Final = "alertmanager/alertmanager-merged.yml"


def merge_fragment(
    into: Path, fragment: str, alerts: Iterable[Group]
) -> tuple[str, tuple[str, ...]]:
    """Return the merged configuration, and warnings of the routes that *fragment* would shadow."""
    existing: Any
    try:
        existing = yaml.safe_load(into.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {into}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{into} is not valid YAML: {error}") from None
    try:
        document = merged(existing, yaml.safe_load(fragment))
        labels = (
            {**sample(rule).labels, **rule.labels, "alertname": rule.alert}
            for group in alerts
            for rule in group.rules
            if isinstance(rule, AlertRule)
        )
        return yaml_text(document), shadowed(existing, labels)
    except UserError as error:
        raise UserError(f"{into}: {error}") from None
