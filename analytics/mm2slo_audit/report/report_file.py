"""Writes a report to a file; the suffix selects the format."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from mm2slo_audit.report.html_report import render_html
from mm2slo_audit.report.json_report import render_json
from mm2slo_audit.report.markdown_report import render_markdown
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from mm2slo_audit.run.run_report import RunReport

_FORMATS: Final[Mapping[str, Callable[[RunReport], str]]] = {
    ".html": render_html,
    ".htm": render_html,
    ".md": render_markdown,
    ".json": render_json,
}


def check_report_path(path: Path) -> Path:
    """Check before the run that a report can be written to *path*. Raises UserError if not."""
    if path.suffix.lower() not in _FORMATS:
        raise UserError(
            f"--report {str(path)!r} has an unknown suffix; expected .html, .md or .json"
        )
    if path.is_dir():
        raise UserError(f"--report {str(path)!r} is a folder; expected a file")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise UserError(f"--report {str(path)!r}: folder {folder} does not exist; create it first")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise UserError(f"--report {str(path)!r} cannot be written: permission denied")
    return path


def write_report(path: Path, report: RunReport) -> None:
    """Write *report* atomically in the format of the suffix. Raises UserError if that fails."""
    text = _FORMATS[path.suffix.lower()](report)
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UserError(f"--report {str(path)!r} cannot be written: {error.strerror}") from None
