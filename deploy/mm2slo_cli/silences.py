"""Silences in Alertmanager for planned maintenance (its API, version 2)."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from mm2slo_cli.monitoring_api import HttpStatusError
from mm2slo_cli.time_options import format_time
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_cli.monitoring_api import Server
    from mm2slo_core.objectives.exclusion import Exclusion
    from mm2slo_core.topology import Flow

_NOT_FOUND = 404


def silence(server: Server, exclusion: Exclusion, flows: Sequence[Flow]) -> str:
    """Silence the alerts of *flows* during *exclusion*; returns the silence's id.

    Alertmanager treats a start in the past as now. Raises UserError with the equivalent amtool
    command when Alertmanager rejects the request or is unreachable.
    """
    try:
        return _create(server, _body(exclusion, flows))
    except UserError as error:
        raise UserError(
            f"no silence was created: {error}; create it later with: "
            f"{amtool_line(server, exclusion, flows)}"
        ) from None


def end_silence(server: Server, silence_id: str) -> bool:
    """Expire a silence; False if it does not exist or has ended already.

    Raises UserError when Alertmanager rejects the request or is unreachable.
    """
    path = f"/api/v2/silence/{silence_id}"
    try:
        found = server.call("GET", path)
        if isinstance(found, dict) and found.get("status") == {"state": "expired"}:
            return False
        server.call("DELETE", path)
    except HttpStatusError as error:
        if error.status == _NOT_FOUND:
            return False
        raise
    return True


def _create(server: Server, body: dict[str, object]) -> str:
    response = server.call("POST", "/api/v2/silences", body)
    if not isinstance(response, dict) or "silenceID" not in response:
        raise UserError(f"{server} returned an unexpected response: check the URL")
    return str(response["silenceID"])


def amtool_line(server: Server, exclusion: Exclusion, flows: Sequence[Flow]) -> str:
    """Return the amtool command that creates the same silence."""
    value = _pattern(flows)
    return shlex.join(
        [
            "amtool",
            "silence",
            "add",
            f"--alertmanager.url={server.base}",
            f"--author={exclusion.who}",
            f"--start={_moment(exclusion.start)}",
            f"--end={_moment(exclusion.end)}",
            f"--comment={_comment(exclusion)}",
            f"flow=~{value}" if len(flows) > 1 else f"flow={value}",
        ]
    )


def _body(exclusion: Exclusion, flows: Sequence[Flow]) -> dict[str, object]:
    matcher = {
        "name": "flow",
        "value": _pattern(flows),
        "isRegex": len(flows) > 1,
        "isEqual": True,
    }
    return {
        "matchers": [matcher],
        "startsAt": _moment(exclusion.start),
        "endsAt": _moment(exclusion.end),
        "createdBy": exclusion.who,
        "comment": _comment(exclusion),
    }


def _pattern(flows: Sequence[Flow]) -> str:
    """The currently configured flows: a wildcard must not silence flows added later."""
    if len(flows) == 1:
        return flows[0].label
    return "|".join(re.escape(flow.label) for flow in sorted(flows))


def _moment(epoch_ms: int) -> str:
    """Always with seconds, as Go's RFC 3339 requires."""
    text = format_time(epoch_ms)
    return text.replace("Z", ":00Z") if epoch_ms % 60_000 == 0 else text


def _comment(exclusion: Exclusion) -> str:
    return f"mm2slo exclusion {exclusion.id}: {exclusion.reason}"
