"""The parts of a configuration that an existing Alertmanager lacks, and a merge with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mm2slo_alerts.alertmanager.inhibition import OURS
from mm2slo_alerts.alertmanager.matchers import matchers_of, matches
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LISTS: Final = ("receivers", "inhibit_rules", "templates")


def fragment(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a whole configuration *document*, its route for our alerts only."""
    return {
        "route": {"matchers": [str(OURS)], **document["route"]},
        **{name: document[name] for name in _LISTS},
    }


def merged(existing: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """Return *existing* with the fragment *added*, whose route comes first.

    Raises UserError for an existing configuration without a route, or a receiver in both.
    """
    if not isinstance(existing, dict) or not isinstance(existing.get("route"), dict):
        raise UserError("the file has no route; expected the configuration of an Alertmanager")
    known = {each["name"] for each in existing.get("receivers") or ()}
    names = [each["name"] for each in added["receivers"]]
    if twice := sorted(known.intersection(names) - {"null"}):
        raise UserError(
            f"receiver {twice[0]!r} is in both configurations; remove it from the existing one, "
            "or rename its channel in mm2slo.yaml"
        )
    route = existing["route"]
    new = [each for each in added["receivers"] if each["name"] not in known]
    lists = {**added, "receivers": new}
    return {
        **existing,
        "route": {**route, "routes": [added["route"], *(route.get("routes") or ())]},
        **{name: [*(existing.get(name) or ()), *lists[name]] for name in _LISTS},
    }


def shadowed(existing: Mapping[str, Any], alerts: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """Return a sentence for each existing route that some of *alerts* would no longer reach."""
    labels = list(alerts)
    sentences = []
    for route in existing["route"].get("routes") or ():
        matchers = tuple(matchers_of(route))
        taken = sorted({each["alertname"] for each in labels if matches(matchers, each)})
        if taken:
            named = ", ".join(map(str, matchers)) or "without matchers"
            more = f" and {len(taken) - 2} more" if len(taken) > 2 else ""
            sentences.append(
                f"the fragment shadows the route {named} (receiver "
                f"{route.get('receiver', 'of its parent')}), which would no longer receive "
                f"{', '.join(taken[:2])}{more}; remove it, or set continue: true in the "
                "fragment's route"
            )
    return tuple(sentences)
