"""Checks of `alerting:`: duplicate and unknown names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.config.section_checks import Finding
from mm2slo_core.config.suggestion import suggest
from mm2slo_core.objectives.slo_ids import slug

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.config.alerting_config import AlertingConfig


def check_alerting(alerting: AlertingConfig) -> Iterator[Finding]:
    """Channel names are unique, and `watchdog` and `platform` refer to one of them."""
    yield from _check_unique(alerting)
    webhooks = tuple(each.name for each in alerting.webhooks)
    yield from _check_named("watchdog", alerting.watchdog, webhooks, "webhooks")
    yield from _check_named("platform", alerting.platform, alerting.channels, "webhooks")


def _check_named(
    key: str, name: str | None, known: tuple[str, ...], where: str
) -> Iterator[Finding]:
    if name is None or name in known:
        return
    close = suggest(name, known)
    yield Finding(
        (key,),
        f"unknown receiver {name!r}",
        f"one of {', '.join(known)}" if known else f"a name under alerting.{where}",
        f"did you mean {close!r}?" if close else f"add {name} under alerting.{where}",
    )


def _check_unique(alerting: AlertingConfig) -> Iterator[Finding]:
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
