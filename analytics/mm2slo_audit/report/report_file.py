"""Writes a report into a file; its suffix says the form."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from mm2slo_audit.report.html_report import html
from mm2slo_audit.report.json_report import render_json
from mm2slo_audit.report.markdown_report import markdown
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from mm2slo_audit.run.run_report import RunReport

_FORMS: Final[Mapping[str, Callable[[RunReport], str]]] = {
    ".html": html,
    ".htm": html,
    ".md": markdown,
    ".json": render_json,
}


def check_report_path(path: Path) -> Path:
    """*path*, if a report can be written there: better to know before an hour of reading.

    Raises UserError otherwise.
    """
    if path.suffix.lower() not in _FORMS:
        raise UserError(f"--report {str(path)!r} has no known form: end it in .html, .md or .json")
    if path.is_dir():
        raise UserError(f"--report {str(path)!r} is a folder: name a file in it")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise UserError(f"--report {str(path)!r}: there is no folder {folder}; create it first")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise UserError(f"--report {str(path)!r} cannot be written: permission denied")
    return path


def write_report(path: Path, report: RunReport) -> None:
    """Write *report* in the form of the suffix; a former file stays whole until it is done.

    Raises UserError when it cannot be written.
    """
    text = _FORMS[path.suffix.lower()](report)
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UserError(f"--report {str(path)!r} cannot be written: {error.strerror}") from None
