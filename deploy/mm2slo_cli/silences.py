"""Silences in Alertmanager for planned maintenance (its API, version 2)."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from mm2slo_cli.moments import shown
from mm2slo_cli.web_calls import Refused
from mm2slo_core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_cli.web_calls import Server
    from mm2slo_core.objectives.exclusion import Exclusion
    from mm2slo_core.topology import Flow

_GONE = 404


def silence(server: Server, exclusion: Exclusion, flows: Sequence[Flow]) -> str:
    """Silence the alerts of *flows* for as long as *exclusion* lasts; gives the silence's id.

    A start in the past is now, to Alertmanager. Raises UserError when it refuses or is away; the
    sentence holds the line of amtool that does the same.
    """
    try:
        return _made(server, _body(exclusion, flows))
    except UserError as error:
        raise UserError(
            f"the silence was not made: {error}; later: {amtool_line(server, exclusion, flows)}"
        ) from None


def end_silence(server: Server, silence_id: str) -> bool:
    """End a silence now; False when Alertmanager has it no more, or it had ended.

    Raises UserError when it refuses or is away.
    """
    path = f"/api/v2/silence/{silence_id}"
    try:
        found = server.call("GET", path)
        if isinstance(found, dict) and found.get("status") == {"state": "expired"}:
            return False
        server.call("DELETE", path)
    except Refused as error:
        if error.status == _GONE:
            return False
        raise
    return True


def _made(server: Server, body: dict[str, object]) -> str:
    answer = server.call("POST", "/api/v2/silences", body)
    if not isinstance(answer, dict) or "silenceID" not in answer:
        raise UserError(f"{server} answers nonsense: check the address")
    return str(answer["silenceID"])


def amtool_line(server: Server, exclusion: Exclusion, flows: Sequence[Flow]) -> str:
    """The command that makes the same silence by hand."""
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
    """The flows as they are now: a flow configured later is not silenced by a wildcard of today."""
    if len(flows) == 1:
        return flows[0].label
    return "|".join(re.escape(flow.label) for flow in sorted(flows))


def _moment(epoch_ms: int) -> str:
    """With seconds always: Go's RFC 3339 has no shorter form."""
    text = shown(epoch_ms)
    return text.replace("Z", ":00Z") if epoch_ms % 60_000 == 0 else text


def _comment(exclusion: Exclusion) -> str:
    return f"mm2slo exclusion {exclusion.id}: {exclusion.reason}"
