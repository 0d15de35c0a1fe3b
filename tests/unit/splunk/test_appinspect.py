"""Splunk's own checks of the app."""

import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

APP = Path(__file__).parents[3] / "deploy/splunk/repl_observability"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))


def appinspect() -> str:
    """On the path, or where `make appinspect` installs it."""
    own = CACHE / "mm2slo/appinspect/bin/splunk-appinspect"
    found = shutil.which("splunk-appinspect") or shutil.which(own)
    if found is None:
        pytest.skip(
            "no splunk-appinspect: run make appinspect (no development package, for its licence)"
        )
    return found


@pytest.mark.parametrize(
    ("old", "new", "failures"),
    [("", "", 0), ('<form version="1.1"', "<form", 1)],
)
def test_appinspect_reports_no_problem_and_finds_a_mistake(
    tmp_path: Path, *, old: str, new: str, failures: int
) -> None:
    app = Path(shutil.copytree(APP, tmp_path / APP.name))
    view = app / "default/data/ui/views/replication_fleet.xml"
    text = view.read_text(encoding="utf-8")
    assert old in text
    view.write_text(text.replace(old, new), encoding="utf-8")
    with tarfile.open(tmp_path / "app.tgz", "w:gz") as archive:
        archive.add(app, APP.name)

    command = [appinspect(), "inspect", "app.tgz", "--mode", "precert"]
    options = ["--included-tags", "cloud", "--data-format", "json", "--output-file", "out.json"]
    done = subprocess.run(
        [*command, *options], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    summary = document["summary"]
    found = [
        (check["name"], check["messages"])
        for group in document["reports"][0]["groups"]
        for check in group["checks"]
        if check["result"] in {"failure", "error", "warning"}
    ]
    assert len(found) == failures, found
    assert summary["failure"] + summary["error"] + summary["warning"] == failures
    assert summary["success"] > 50
