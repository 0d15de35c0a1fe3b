"""The pages in Chromium, at phone and desktop width, in light and dark mode."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path

import pytest
from chromium import Tab, browsing, find_chromium
from sample_report import AUDITS, FLOWS, GROUPS, LATENCIES, sample_details, sample_report

from mm2slo_core.reporting.report_entry import worst_first
from mm2slo_core.reporting.slo_report import Report
from mm2slo_core.topology import Flow
from mm2slo_report.rendering.report_html import as_html, status_page_html

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_chromium() is None, reason="no chromium: run make chromium"),
]
AXE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "mm2slo" / "axe.min.js"
REPORT, DETAILS = sample_report(), sample_details()
OBJECTIVES = 20


def fleet_report() -> Report:
    """`OBJECTIVES` of several flows with names of ordinary length, of every status."""
    entries = tuple(
        replace(
            each,
            id=f"{each.id}-{number}",
            objective=replace(each.objective, flow=Flow(f"us-east-{number // 8}", "eu-west")),
        )
        for number, each in enumerate(islice(cycle(REPORT.entries), OBJECTIVES))
    )
    return replace(REPORT, entries=worst_first(entries), warnings=())


PAGES = {
    "page": status_page_html(REPORT, FLOWS, GROUPS, AUDITS, latencies=LATENCIES, details=DETAILS),
    "report": as_html(REPORT, DETAILS),
    "fleet": status_page_html(fleet_report()),
    "objective": as_html(replace(REPORT, entries=(DETAILS[0].entry,)), DETAILS[:1]),
}
SIZES = {"desktop": (1280, 900), "phone": (390, 844), "small phone": (360, 780)}
WIDER_THAN_THE_SCREEN = """
[...document.querySelectorAll("body *")].filter(each => {
  const box = each.getBoundingClientRect();
  return box.right > innerWidth + 1 && box.width > 0 && !each.closest(".scroll, nav, .hidden");
}).map(each => each.outerHTML.slice(0, 120))
"""
BEYOND_ITS_PANEL = """
[...document.querySelectorAll(".panel *")].filter(each => {
  const box = each.getBoundingClientRect();
  const panel = each.closest(".panel").getBoundingClientRect();
  return box.width > 0 && box.right > panel.right && !each.closest(".scroll");
}).map(each => each.outerHTML.slice(0, 120))
"""
BETWEEN = (1120, 1024, 800, 600)
LOOKS = pytest.mark.parametrize(
    ("name", "size", "dark"),
    [(name, size, dark) for name in PAGES for size in SIZES for dark in (False, True)],
)


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browsing(tmp_path_factory.mktemp("profile")) as found:
        yield found


def open_page(tab: Tab, folder: Path, name: str, size: str, *, dark: bool = False) -> Tab:
    path = folder / f"{name}.html"
    path.write_text(PAGES[name], "utf-8")
    tab.complaints.clear()
    tab.requested.clear()
    tab.show(*SIZES[size], dark=dark)
    tab.open(path.as_uri())
    return tab


@LOOKS
def test_page_fits_screen_without_console_messages(
    tab: Tab, tmp_path: Path, name: str, size: str, *, dark: bool
) -> None:
    open_page(tab, tmp_path, name, size, dark=dark)
    assert tab.ask("document.documentElement.scrollWidth <= innerWidth"), "scrolls sideways"
    assert tab.ask(WIDER_THAN_THE_SCREEN) == []
    assert tab.complaints == []
    assert [each for each in tab.requested if not each.startswith("data:")] == [
        (tmp_path / f"{name}.html").as_uri()
    ]
    picture = tab.picture(
        Path(os.environ.get("MM2SLO_SCREENSHOTS", tmp_path))
        / (f"{name}-{size}-{'dark' if dark else 'light'}.png")
    )
    assert len(picture) > 20_000, "an empty picture"


@pytest.mark.parametrize(("size", "limit"), [("phone", 2_000), ("desktop", 2_800)])
def test_list_of_20_objectives_is_short(tab: Tab, tmp_path: Path, size: str, limit: int) -> None:
    open_page(tab, tmp_path, "fleet", size)
    rows = "[...document.querySelectorAll('tr[data-slo]')].map(each => each.offsetHeight)"
    heights = tab.ask(rows)
    assert len(heights) == OBJECTIVES
    assert sum(heights) <= limit, heights
    # The rest are flows, other sections and definitions.
    assert tab.ask("document.documentElement.scrollHeight") <= limit + 4_200
    assert tab.ask("document.documentElement.scrollWidth <= innerWidth"), "scrolls sideways"


def test_page_of_one_objective_has_all_its_figures_on_a_phone(tab: Tab, tmp_path: Path) -> None:
    open_page(tab, tmp_path, "objective", "phone")
    cells = "[...document.querySelectorAll('tr[data-slo] > td')]"
    shown = tab.ask(f"{cells}.filter(each => each.offsetHeight).map(each => each.dataset.label)")
    assert shown == [
        "Status", "Objective", "Measured", "Remaining budget", "Burn rate (1h)", "Previous period",
        "Coverage",
    ]  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
def test_navigation_shows_every_section(tab: Tab, tmp_path: Path, size: str) -> None:
    open_page(tab, tmp_path, "page", size)
    cut = """[...document.querySelectorAll("nav a")].filter(each => {
      const box = each.getBoundingClientRect();
      return box.left < 0 || box.right > innerWidth || box.height < 24;
    }).map(each => each.textContent)"""
    assert tab.ask("document.querySelectorAll('nav a').length") == 7
    assert tab.ask(cut) == []


@pytest.mark.parametrize("name", PAGES)
def test_page_fits_intermediate_widths(tab: Tab, tmp_path: Path, name: str) -> None:
    open_page(tab, tmp_path, name, "desktop")
    for width in BETWEEN:
        tab.show(width, 900)
        assert tab.ask("document.documentElement.scrollWidth <= innerWidth"), width
        assert tab.ask(WIDER_THAN_THE_SCREEN) == [], width
        assert tab.ask(BEYOND_ITS_PANEL) == [], width


@LOOKS
def test_axe_reports_no_violations(
    tab: Tab, tmp_path: Path, name: str, size: str, *, dark: bool
) -> None:
    if not AXE.exists():
        pytest.skip("no axe: run make axe")
    open_page(tab, tmp_path, name, size, dark=dark)
    tab.ask(AXE.read_text("utf-8") + ";0")
    found = json.loads(tab.ask("axe.run().then(each => JSON.stringify(each.violations))"))
    assert [
        (each["id"], [node["html"][:160] for node in each["nodes"][:3]]) for each in found
    ] == []


def test_status_filter_works_by_keyboard_without_script(tab: Tab, tmp_path: Path) -> None:
    open_page(tab, tmp_path, "page", "desktop")
    visible = 'document.querySelectorAll("tr[data-status]")'
    seen = f"[...{visible}].filter(each => each.offsetParent).map(each => each.dataset.status)"
    assert len(tab.ask(seen)) == len(REPORT.entries)
    tab.ask("document.querySelector('#show-all').focus()")
    tab.press("ArrowRight")
    assert tab.ask(seen) == ["breached"]
    tab.press("ArrowRight")
    assert tab.ask(seen) == ["at_risk"] * 4
    for width in (*BETWEEN, *(width for width, _ in SIZES.values())):
        tab.show(width, 900)
        assert tab.ask(seen) == ["at_risk"] * 4, width


def test_first_tab_stop_skips_to_content(tab: Tab, tmp_path: Path) -> None:
    open_page(tab, tmp_path, "page", "desktop")
    tab.press("Tab")
    assert tab.ask("document.activeElement.textContent") == "Skip to content"
    assert tab.ask("document.activeElement.getBoundingClientRect().left >= 0")
    tab.press("Enter")
    assert tab.ask("location.hash") == "#main"


def test_map_flows_link_to_their_rows(tab: Tab, tmp_path: Path) -> None:
    open_page(tab, tmp_path, "page", "desktop")
    links = tab.ask("[...document.querySelectorAll('svg.map a')].map(each => each.href.baseVal)")
    assert set(links) == {f"#flow-{each.flow.slug}" for each in FLOWS}


def test_report_can_be_printed(tab: Tab, tmp_path: Path) -> None:
    open_page(tab, tmp_path, "report", "desktop", dark=True)
    tab.show(690, 980)
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.ask("document.documentElement.scrollWidth <= innerWidth"), "wider than the paper"
    assert tab.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    tab.call("Emulation.setEmulatedMedia", media="")
    printed = tab.printed()
    assert printed.startswith(b"%PDF")
    assert printed.count(b"/Type /Page\n") in range(2, 7)
