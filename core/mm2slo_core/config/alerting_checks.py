"""Checks of `alerting:`: duplicate and unknown names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.config.section_checks import Finding
from mm2slo_core.config.suggestion import did_you_mean
from mm2slo_core.objectives.slo_ids import slug

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.config.alerting_config import AlertingConfig


def check_alerting(alerting: AlertingConfig) -> Iterator[Finding]:
    """Channel names are unique, and `watchdog` and `platform` refer to one of them."""
    webhooks = tuple(each.name for each in alerting.webhooks)
    for key, known in (("watchdog", webhooks), ("platform", alerting.channels)):
        name = getattr(alerting, key)
        if name is not None and name not in known:
            yield Finding(
                (key,), f"unknown receiver {name!r}",
                f"one of {', '.join(known)}" if known else "a name under alerting.webhooks",
                did_you_mean(name, known, f"add {name} under alerting.webhooks"),
            )  # fmt: skip
    first: dict[str, tuple[str, int, str]] = {}
    for kind, receivers in (("slack", alerting.slack), ("webhooks", alerting.webhooks)):
        for index, name in enumerate(each.name for each in receivers):
            claimed = first.setdefault(slug(name) or name, (kind, index, name))
            if claimed[:2] != (kind, index):
                other = "" if claimed[2] == name else f" ({claimed[2]!r})"
                yield Finding(
                    (kind, index, "name"),
                    f"{name!r} is already the name of alerting.{claimed[0]}[{claimed[1]}]{other}",
                    "names that differ in more than case and punctuation",
                    "rename one of them",
                )  # fmt: skip
