"""How the suite runs: what shares a worker, what starts first, how hard properties search."""

import os
import shutil
from pathlib import Path
from typing import Final

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

GROUPS: Final = (
    "quiet-lab",
    "fault-lab",
    "failover-lab",
    "demo",
    "compose",
    "secured-lab",
    "images",
    "spark",
    "monitoring",
)
"""Tests of one `xdist_group` run on one worker, so that they share its lab, its JVM or its
servers. The longest group starts first; what names no group is shared out file by file."""

TOOLS: Final = shutil.which("promtool") and shutil.which("amtool")

FAILED: Final = "build/failed-tests.txt"
"""Where the run leaves its failures for `deploy/scripts/retry-failed`."""

settings.register_profile(
    "fast",
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.register_profile("deep", parent=settings.get_profile("fast"), max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark property tests, skip what cannot run here, and put the longest groups first."""
    ranks = {}
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("property")
        if item.get_closest_marker("promtool") and not TOOLS:
            item.add_marker(pytest.mark.skip("promtool or amtool is missing: make prometheus"))
        mark = item.get_closest_marker("xdist_group")
        if mark is None:
            item.add_marker(pytest.mark.xdist_group(item.location[0]))
        elif mark.args[0] not in GROUPS:
            raise pytest.UsageError(
                f"{item.nodeid}: unknown group {mark.args[0]!r}; expected one of {GROUPS}"
            )
        elif mark.args[0] == "spark":
            item.add_marker("spark")
        ranks[item] = len(GROUPS) if mark is None else GROUPS.index(mark.args[0])
    items.sort(key=ranks.__getitem__)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """End what a group shares with its last test: idle clusters would run until the suite ends."""
    if _group(item) not in GROUPS or _group(item) == _group(nextitem):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    runtestprotocol(item, nextitem=None)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _group(item: pytest.Item | None) -> object:
    mark = item and item.get_closest_marker("xdist_group")
    return mark and mark.args[0]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Leave the failed tests in a file, each with what it ran on."""
    config = terminalreporter.config
    grouped = config.getoption("numprocesses", None)
    lines = set()
    for each in (*terminalreporter.getreports("failed"), *terminalreporter.getreports("error")):
        # xdist appends the group's name.
        name = each.nodeid.rpartition("@")[0] if grouped else each.nodeid
        # The report of a worker that crashed, as librdkafka can make it, has no keywords.
        on_lab = "lab" in getattr(each, "keywords", ()) or name.startswith("tests/integration/")
        kind = "lab" if on_lab else "unit"
        lines.add(f"{kind} {name}\n")
    path = Path(config.rootpath) / FAILED
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(sorted(lines)), encoding="utf-8")
