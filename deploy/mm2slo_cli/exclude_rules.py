"""Writes the rule file of planned maintenance and makes Prometheus load it."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mm2slo_alerts.maintenance_rules import groups, text
from mm2slo_alerts.rule_model import RecordingRule
from mm2slo_cli.monitoring_api import HttpStatusError
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from mm2slo_alerts.rule_model import Group
    from mm2slo_cli.monitoring_api import Server
    from mm2slo_core.objectives.exclusion import Exclusion
    from mm2slo_core.topology import Flow

_RELOAD: Final = "/-/reload"
_FORBIDDEN: Final = 403


@dataclass(frozen=True, slots=True)
class Written:
    """Content of the rule file, and whether it has changed."""

    groups: tuple[Group, ...]
    changed: bool


def write_rules(
    path: Path,
    exclusions: Callable[[], Iterable[Exclusion]],
    flows: Collection[Flow],
    now: int,
    window: float,
) -> Written:
    """Write the result of *exclusions* atomically into the rule file *path*.

    *exclusions* is called again after writing until the file holds its result: of several
    concurrent commands, the last to write may not have been the last to read. Raises UserError when
    the file cannot be written; it is then unchanged.
    """
    changed = False
    while True:
        found = groups(exclusions(), flows, now, window=window)
        content = text(found)
        if _content(path) == content:
            return Written(found, changed)
        _replace(path, content)
        changed = True


def refuse_missing_folder(path: Path) -> None:
    """Raise UserError if the folder of the rule file is missing, before the store changes."""
    if path.is_dir():
        raise UserError(f"rule file {path} is a folder: give the path of a file")
    if not path.parent.is_dir():
        raise UserError(
            f"the folder of rule file {path} does not exist: create {path.parent}, or give another "
            "--rules-file"
        )


def reload(server: Server, expected: Iterable[Group]) -> str | None:
    """Reload Prometheus; return what is missing afterwards, or None.

    Raises UserError when it rejects the request or is unreachable.
    """
    try:
        server.call("POST", _RELOAD)
    except HttpStatusError as error:
        if error.status != _FORBIDDEN:
            raise
        raise UserError(
            f"{server} does not reload on request: start it with --web.enable-lifecycle, "
            "or send it SIGHUP"
        ) from None
    response = server.call("GET", "/api/v1/rules?type=record")
    try:
        loaded = {
            (rule["name"], rule.get("labels", {}).get("flow"), _moments(rule["query"]))
            for group in response["data"]["groups"]
            for rule in group["rules"]
        }
    except (KeyError, TypeError):
        raise UserError(f"{server} returned an unexpected list of rules: check the URL") from None
    wanted = {
        (rule.record, rule.labels["flow"], _moments(rule.expr))
        for group in expected
        for rule in group.rules
        if isinstance(rule, RecordingRule)
    }
    if wanted <= loaded:
        return None
    return (
        f"{server} was reloaded but has not loaded the rule file: "
        "add it to rule_files in prometheus.yml and reload again"
    )


def _moments(expression: str) -> tuple[float, ...]:
    """The times in an expression, which Prometheus reformats."""
    return tuple(float(each) for each in re.findall(r"(?:>=|<) ([\d.e+]+)", expression))


def _content(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):  # replaced, or writing it fails
        return None


def _replace(path: Path, content: str) -> None:
    """Write a temporary file and rename it: Prometheus may read at any time."""
    try:
        mode = path.stat().st_mode & 0o777
    except OSError:
        mode = 0o644  # Prometheus runs as another user
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            with suppress(OSError):
                Path(temporary).unlink(missing_ok=True)
        raise UserError(
            f"cannot write rule file {path}: {error.strerror}; "
            "fix this, then run: mm2slo exclude write"
        ) from None
