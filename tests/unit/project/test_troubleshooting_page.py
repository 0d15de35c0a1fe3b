"""What docs/troubleshooting.md and docs/comparison.md quote exists: messages, series, figures."""

import ast
import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from mm2slo_cli.main import main
from mm2slo_core.catalogue import ALL
from mm2slo_core.catalogue.service_metrics import LOGSHIP_GROUPS, REPORT_GROUPS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
PLACE = "…"


def texts_of(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        if isinstance(node, ast.JoinedStr | ast.Constant):
            yield "".join(str(p.value) if isinstance(p, ast.Constant) else PLACE for p in parts)


def test_quoted_messages_are_texts_of_the_product() -> None:
    # A line each; expressions in it are PLACE.
    modules = sorted(ROOT.glob("*/mm2slo_*/**/*.py"))
    texts = "\n".join(itertools.chain(*map(texts_of, modules)))
    quoted = re.findall(r'^\| "([^"]+)" \|', PAGE, re.MULTILINE)
    assert len(quoted) > 15
    assert [message for message in quoted if message not in texts] == []


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`(mm2slo [^`]+)`", PAGE))))
def test_next_command_is_accepted(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", [*shlex.split(command), "--help"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, capsys.readouterr().err) == (0, "")


def test_page_is_short_and_names_published_series() -> None:
    services = itertools.chain(*REPORT_GROUPS.values(), *LOGSHIP_GROUPS.values())
    published = {name for metric in (*ALL, *services) for name in metric.sample_names}
    assert set(re.findall(r"`(mm2_\w+)`", PAGE)) - published == set()
    assert len(PAGE.splitlines()) <= 150


def test_comparison_states_figures_of_the_page_about_performance_only() -> None:
    stated = re.findall(r"[\d.]+ (?:s|MB)\b", (ROOT / "docs/comparison.md").read_text("utf-8"))
    measured = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    assert len(stated) > 5
    assert [each for each in stated if f"| {each} " not in measured] == []
