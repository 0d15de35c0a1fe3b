"""Pages in Chromium: content, layout, and no other requests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import Tab, browsing, find_chromium
from dashboard_preview.board_page import WIDTH
from generated_dashboards import dashboards
from preview_fixtures import FakePrometheus, draw_page, matrix, vector

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_chromium() is None, reason="no chromium: run make chromium"),
]
FLOWS = (
    "us->eu",
    'a "b" <i>&amp;',
    "eu->us with a name that is far longer than any column is wide",
)
HISTORY = matrix(
    *(({"flow": each}, {n * 15: n * (k + 1.0) for n in range(40)}) for k, each in enumerate(FLOWS))
)
ANSWERS = {
    "mm2_flow_state": vector(*(({"flow": each}, 3) for each in FLOWS)),
    "mm2_flow_lag_seconds": vector(*(({"flow": each}, 90) for each in FLOWS)),
    "topk": HISTORY,
    "bottomk": HISTORY,
}
BEYOND = """
[...document.querySelectorAll("section")].flatMap(panel => {
  const edge = panel.getBoundingClientRect();
  return [...panel.querySelectorAll("text, rect, b, li, td")].filter(each => {
    const box = each.getBoundingClientRect();
    if (each.closest(".table, .legend, details, .clipped")) return false;
    return box.right > edge.right + 1 || box.left < edge.left - 1 || box.bottom > edge.bottom + 1;
  }).map(each => each.outerHTML.slice(0, 120));
})
"""
OVERLAPPING = """
[...document.querySelectorAll(".axis")].flatMap(axis => {
  const boxes = [...axis.querySelectorAll("text")].map(each => each.getBoundingClientRect());
  return boxes.filter((a, n) => boxes.slice(n + 1).some(b =>
    a.left < b.right && b.left < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom));
}).length
"""


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browsing(tmp_path_factory.mktemp("profile")) as found:
        yield found


def open_page(tab: Tab, path: Path, uid: str, answers: dict[str, object]) -> None:
    drawn = draw_page(dashboards()[uid], FakePrometheus(answers, {"flow": FLOWS}))
    path.write_text(drawn.html, "utf-8")
    tab.complaints.clear()
    tab.requested.clear()
    tab.show(WIDTH, drawn.height, dark=True)
    tab.open(path.as_uri())
    assert tab.complaints == []
    assert [each for each in tab.requested if not each.startswith("data:")] == [path.as_uri()]
    height = tab.ask("document.documentElement.scrollHeight")
    assert height == drawn.height


def test_fleet_dashboard_is_rendered(tab: Tab, tmp_path: Path) -> None:
    open_page(tab, tmp_path / "fleet.html", "mm2slo-overview", dict(ANSWERS))
    rows = tab.ask("""
      [...document.querySelectorAll('[aria-label="Flow status"] tbody tr')].map(
        row => [...row.cells].map(cell => cell.innerText))
    """)
    assert sorted(row[0] for row in rows) == sorted(FLOWS)
    assert {tuple(row[1:]) for row in rows} == {("stopped", "1.5 min")}
    colour = "getComputedStyle(document.querySelector('tbody td:nth-child(2)')).backgroundColor"
    assert tab.ask(colour) == "rgb(213, 94, 0)"
    lines = "document.querySelectorAll('[aria-label=\"Highest lag by flow\"] path.line').length"
    assert tab.ask(lines) == len(FLOWS)
    assert tab.ask("document.querySelectorAll('i:not([style]), script').length") == 0
    assert tab.ask(BEYOND) == []
    assert tab.ask(OVERLAPPING) == 0


@pytest.mark.parametrize("uid", dashboards())
def test_content_stays_within_panels(tab: Tab, tmp_path: Path, uid: str) -> None:
    open_page(
        tab,
        tmp_path / "page.html",
        uid,
        {"topk": HISTORY, "bottomk": HISTORY, "mm2_flow_state": HISTORY},
    )
    assert tab.ask(BEYOND) == []
    assert tab.ask(OVERLAPPING) == 0


def test_description_opens_without_javascript(tab: Tab, tmp_path: Path) -> None:
    open_page(tab, tmp_path / "fleet.html", "mm2slo-overview", {})
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        box = "document.querySelector('summary').getBoundingClientRect()"
        x, y = (tab.ask(f"{box}.{side} + 9") for side in ("x", "y"))
        for kind in ("mousePressed", "mouseReleased"):
            tab.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        shown = "document.querySelector('details').open"
        assert tab.ask(shown)
    finally:
        tab.call("Emulation.setScriptExecutionDisabled", value=False)
