"""Keeps the rule file of planned maintenance as the store says, and has Prometheus read it."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mm2slo_alerts.maintenance import groups, text
from mm2slo_alerts.model import RecordingRule
from mm2slo_cli.web_calls import Refused
from mm2slo_core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from mm2slo_alerts.model import Group
    from mm2slo_cli.web_calls import Server
    from mm2slo_core.objectives.exclusion import Exclusion
    from mm2slo_core.topology import Flow

_RELOAD: Final = "/-/reload"
_FORBIDDEN: Final = 403


@dataclass(frozen=True, slots=True)
class Written:
    """What the rule file holds, and whether it held something else before."""

    groups: tuple[Group, ...]
    changed: bool


def write_rules(
    path: Path,
    exclusions: Callable[[], Iterable[Exclusion]],
    flows: Collection[Flow],
    now: int,
    window: float,
) -> Written:
    """Write what *exclusions* answers into the rule file *path*, as a whole or not at all.

    It is asked again after writing, until the file holds what it answers: of several commands at
    once, the last one to write may not have been the last one to ask. Raises UserError when the
    file cannot be written; it is then as it was.
    """
    changed = False
    while True:
        found = groups(exclusions(), flows, now, window=window)
        content = text(found)
        if _content(path) == content:
            return Written(found, changed)
        _replace(path, content)
        changed = True


def refuse_unwritable(path: Path) -> None:
    """Raise UserError when there is no folder for the rule file, before anything is stored."""
    if path.is_dir():
        raise UserError(f"the rule file {path} is a folder: give the path of a file")
    if not path.parent.is_dir():
        raise UserError(
            f"the rule file {path} has no folder: make {path.parent}, or give another --rules-file"
        )


def reload(server: Server, expected: Iterable[Group]) -> str | None:
    """Have Prometheus read its rule files; what is missing then, or None when all is there.

    Raises UserError when it refuses or is away.
    """
    try:
        server.call("POST", _RELOAD)
    except Refused as error:
        if error.status != _FORBIDDEN:
            raise
        raise UserError(
            f"{server} does not reload by request: start it with --web.enable-lifecycle, "
            "or send its process SIGHUP"
        ) from None
    answer = server.call("GET", "/api/v1/rules?type=record")
    try:
        loaded = {
            (rule["name"], rule["labels"].get("flow"), _moments(rule["query"]))
            for group in answer["data"]["groups"]
            for rule in group["rules"]
        }
    except (KeyError, TypeError):
        raise UserError(f"{server} answers nonsense about its rules: check the address") from None
    wanted = {
        (rule.record, rule.labels["flow"], _moments(rule.expr))
        for group in expected
        for rule in group.rules
        if isinstance(rule, RecordingRule)
    }
    if wanted <= loaded:
        return None
    return (
        f"{server} was reloaded and does not read the rule file: "
        "name it under rule_files in prometheus.yml, and reload again"
    )


def _moments(expression: str) -> tuple[float, ...]:
    """The times in an expression, which Prometheus gives back in a form of its own."""
    return tuple(float(each) for each in re.findall(r"(?:>=|<) ([\d.e+]+)", expression))


def _content(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):  # what cannot be read is replaced, or refused then
        return None


def _replace(path: Path, content: str) -> None:
    """By a file beside it and a rename: Prometheus may read at any moment."""
    try:
        mode = path.stat().st_mode & 0o777
    except OSError:
        mode = 0o644  # Prometheus is another user
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
            f"the rule file {path} cannot be written: {error.strerror}; "
            "mend that, then run: mm2slo exclude write"
        ) from None
