"""Generates docs/lint.md from the list of checks."""

from __future__ import annotations

from typing import Final

from mm2slo_core.mm2_config.lint.check_list import CHECKS

_INTRO: Final = """\
# Checks of `mm2slo lint`

Generated from `core/mm2slo_core/mm2_config/lint/check_list.py` by `python -m mm2slo_cli.docs`; do
not edit. The command also prints what is found while files are read. Checks that read clusters
need `--connect`. The exit code is 2 with errors, 1 with warnings, otherwise 0.

| Check | Severity | Reads | Why it matters | What to do |
|---|---|---|---|---|
"""


def render() -> str:
    """Render the page."""
    rows = (
        f"| `{each.name}` | {each.severity} | {'clusters' if each.connect else 'files'}"
        f" | {each.why} | {each.action} |\n".replace("}|", "}\\|")
        for each in CHECKS.values()
    )
    return _INTRO + "".join(rows)
