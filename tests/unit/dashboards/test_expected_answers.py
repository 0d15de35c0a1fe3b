"""Every query of every panel answers what is expected of it, by Prometheus's own test program.

The series and the answers are written by hand in the folder beside: replicas, another flow and
another job are there, so that an aggregation, a label or a matcher that is wrong shows.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
import yaml
from dashed import Json, dashboards, every_panel, filled, named_targets, panels
from promtool import evaluate, needs_promtool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

pytestmark = needs_promtool

Rows = dict[str, float]
FOLDER: Final = Path(__file__).parent / "answers"
BUILTIN: Final = {"__rate_interval": "4m", "__range": "1h"}
FLOW: Final = "us->eu"
FORTH, BACK = (f"flow={a}->{b} source={a} target={b}" for a, b in (("us", "eu"), ("eu", "us")))
OWNERS: Final = {
    "A": f"{FORTH} job=mm2slo instance=1",
    "B": f"{FORTH} job=mm2slo instance=2",
    "C": f"{BACK} job=mm2slo instance=3",
    "D": f"{BACK} job=mm2slo instance=4",
    "1": "job=mm2slo instance=1",
    "2": "job=mm2slo instance=2",
    "9": "job=other instance=9",
    "X": f"{FORTH} job=mm2slo-report instance=8",
    "Y": f"{FORTH} job=mm2slo-report instance=9",
    "Z": f"{BACK} job=mm2slo-report instance=8",
    "R": FORTH,
    "S": BACK,
}
SMALLEST: Final = {
    "Whose budget is smallest?",
    "When would retention reach what waits?",
    "How many records are between?",
    "How did each budget burn down?",
    "How much is known?",
    "How much was looked at?",
}
"""Where the smallest figures are the worst."""
EXPECTED: Final[dict[str, dict[str, list[Rows] | dict[str, Rows]]]] = yaml.safe_load(
    (FOLDER / "expected.yaml").read_text(encoding="utf-8")
)


def world() -> dict[str, str]:
    found: dict[str, str] = {}
    document = yaml.safe_load((FOLDER / "world.yaml").read_text(encoding="utf-8"))
    for kind, values in (("constant", "{}x15"), ("growing", "0+{}x15")):
        for name, rows in document[kind].items():
            for key, value in rows.items():
                owner, _, labels = str(key).partition(" ")
                found[f"{name}{named(f'{OWNERS[owner]} {labels}')}"] = values.format(value)
    return found


def named(labels: str) -> str:
    pairs = (each.partition("=") for each in labels.split())
    return "{" + ",".join(f'{name}="{value}"' for name, _, value in pairs) + "}"


def asked(dashboard: Json, expression: str, **chosen: str) -> str:
    """With all chosen where several can be, and the flow where one can."""
    return filled(dashboard, expression, FLOW, BUILTIN, chosen)


def pairs(uid: str) -> Iterator[tuple[Json, Rows]]:
    """Each query of a board with what it is to answer, where there are several by their name."""
    for panel in panels(dashboards()[uid]):
        targets, expected = named_targets(panel), EXPECTED[uid][panel["title"]]
        if isinstance(expected, list):
            yield from zip(targets.values(), expected, strict=True)
        else:
            assert list(targets) == list(expected), panel["title"]
            yield from ((targets[name], rows) for name, rows in expected.items())


def answers(folder: Path, expected: Iterable[tuple[str, Rows]]) -> None:
    """What panels have in common must be expected alike; Prometheus is asked it once."""
    at_ten: dict[tuple[str, str], Rows] = {}
    for text, rows in expected:
        wanted = {named(labels): value for labels, value in rows.items()}
        assert at_ten.setdefault((text, "10m"), wanted) == wanted, text
    evaluate(folder, [], world(), at_ten, interval="1m")


def test_there_is_an_answer_for_every_panel() -> None:
    assert {uid: list(each) for uid, each in EXPECTED.items()} == {
        uid: [panel["title"] for panel in panels(found)] for uid, found in dashboards().items()
    }


@pytest.mark.parametrize("uid", EXPECTED)
def test_each_query_answers_what_is_expected(tmp_path: Path, uid: str) -> None:
    board = dashboards()[uid]
    answers(tmp_path, ((asked(board, target["expr"]), rows) for target, rows in pairs(uid)))


@pytest.mark.parametrize("uid", EXPECTED)
def test_what_a_legend_names_is_in_the_answer(uid: str) -> None:
    for target, rows in pairs(uid):
        labels = set(re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat") or ""))
        for row in rows:
            assert labels <= {each.partition("=")[0] for each in row.split()}, target


def test_the_worst_are_shown_where_not_all_are() -> None:
    cut = {
        (panel["title"], found["order"], int(found["count"]))
        for _, panel in every_panel()
        for target in panel["targets"]
        if (found := re.match(r"(?P<order>top|bottom)k\((?P<count>\d+), ", target["expr"]))
    }
    assert {title for title, order, _ in cut if order == "bottom"} == SMALLEST
    assert {count for _, _, count in cut} == {5, 10}
    assert {title for title, _, count in cut if count == 5} == {
        f"Does the {name} pair burn?" for name in ("fast", "steady", "slow", "creeping")
    }


def test_a_chosen_indicator_is_the_only_one_on_its_board(tmp_path: Path) -> None:
    """The table has a row for each that any of its columns answers."""
    board = dashboards()["mm2slo-slo"]
    chosen = [
        (
            asked(board, target["expr"], sli="latency"),
            {key: value for key, value in rows.items() if "sli=latency" in key},
        )
        for target, rows in pairs("mm2slo-slo")
        if any("sli=" in key for key in rows)
    ]
    answers(tmp_path, chosen)


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        (
            "Alerts",
            {
                "alertname=MM2FlowStopped severity=page": 1.0,
                "alertname=MM2TopicMissing severity=ticket": 1.0,
            },
        ),
        ("Planned maintenance", {"flow=us->eu": 1.0}),
        ("Audits", {"flow=us->eu": 300_000.0}),
    ],
)
def test_each_mark_is_of_the_chosen_flow(tmp_path: Path, name: str, rows: Rows) -> None:
    board = dashboards()["mm2slo-flow"]
    [mark] = [each for each in board["annotations"]["list"] if each["name"] == name]
    answers(tmp_path, [(asked(board, mark["expr"]), rows)])
