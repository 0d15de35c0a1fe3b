"""Writes all generated files, or checks that they are up to date.

`python -m mm2slo_cli.docs` writes them; with `--check` it writes nothing and exits with 1 if a file
is outdated. Run it in the root of the repository.
"""

from __future__ import annotations

import sys
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mm2slo_alerts import alerts_page
from mm2slo_alerts.output_files import alert_groups, generated
from mm2slo_alerts.rule_model import Links
from mm2slo_alerts.thresholds import DEFAULT_THRESHOLDS
from mm2slo_cli import config_page, docs_lint, docs_metrics, docs_permissions, docs_rules
from mm2slo_dashboards import dashboard_files as dashboards

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ALERTS: Final = "alerts/generated"
DASHBOARDS: Final = "dashboards/generated"


@cache
def _alert_files() -> Mapping[str, str]:
    return generated()


@cache
def _dashboard_files() -> Mapping[str, str]:
    return dashboards.generate_files()


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "docs/configuration.md": config_page.render,
    "docs/lint.md": docs_lint.render,
    "docs/metrics.md": docs_metrics.render,
    "docs/permissions.md": docs_permissions.render,
    "docs/rules.md": docs_rules.render,
    "docs/alerts.md": lambda: alerts_page.render(alert_groups(Links()), DEFAULT_THRESHOLDS),
    **{f"{ALERTS}/{name}": partial(_alert_files().__getitem__, name) for name in _alert_files()},
    **{
        f"{DASHBOARDS}/{name}": partial(_dashboard_files().__getitem__, name)
        for name in _dashboard_files()
    },
}


def main(arguments: Sequence[str]) -> int:
    """Write or check all files; returns the exit code."""
    stale = [name for name, render in PAGES.items() if not _is_current(Path(name), render())]
    if "--check" not in arguments:
        for name in stale:
            Path(name).write_text(PAGES[name](), encoding="utf-8")
        return 0
    for name in stale:
        sys.stderr.write(f"{name} is outdated; run: python -m mm2slo_cli.docs\n")
    return 1 if stale else 0


def _is_current(page: Path, text: str) -> bool:
    return page.exists() and page.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
