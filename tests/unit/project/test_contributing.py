"""The paths that CONTRIBUTING.md names exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_contributing_names_existing_paths() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = re.findall(
        r"(?:core|exporter|analytics|alerts|dashboards|deploy|cli|tests|docs)/[\w./-]*", text
    )
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / path.rstrip(".")).exists()] == []
