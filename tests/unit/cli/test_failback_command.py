"""`mm2slo failback`: what it says of files and of a cluster that is away."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_process import run_main

from mm2slo_cli import failback
from mm2slo_core.cutover.failback_plan import CopiedTopics, CopyFacts, RecordedPartition
from mm2slo_core.topology import TopicPartition

CONFIG = """
clusters:
  us: {bootstrap_servers: "us:9092"}
  eu: {bootstrap_servers: "eu:9092"}
flows: [{flow: us->eu, policy: {kind: identity}}]
"""
ENDS = """
{"flow": "us->eu", "recorded_at": 1.0, "topics": {"orders": ["id", null, [[100, 100, true]]]}}
"""
COPY = CopyFacts(0, 150, source_end=100, recorded=RecordedPartition(100, 100, proved=True))


class Sync:
    upstream = downstream = 90


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Runs a command in *tmp_path*; the clusters have the partitions *copies* of `orders`."""
    monkeypatch.chdir(tmp_path)
    Path("mm2slo.yaml").write_text(CONFIG)
    Path("ends.json").write_text(ENDS)

    def call(*arguments: str, copies: tuple[CopyFacts, ...] = ()) -> tuple[int, str]:
        found = {TopicPartition("orders", number): each for number, each in enumerate(copies)}
        reader: Any = failback._Reader
        topics = CopiedTopics({"orders": "orders"}, ["audit.log"], [])
        monkeypatch.setattr(reader, "topics", lambda _self: topics)
        monkeypatch.setattr(reader, "positions", lambda _self, _topics: {})
        monkeypatch.setattr(reader, "copies", lambda _self, *_: found)
        monkeypatch.setattr(reader, "has_offsets_topic", lambda _self: False)
        code = run_main(monkeypatch, "failback", *arguments, "--config", "mm2slo.yaml")
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return call


ENDED = ("--ends", "ends.json")
PLAN = ("plan", "--flow", "us->eu", "--out", "positions")


def test_plan_counts_what_returns_and_writes_the_positions(run: Any, tmp_path: Path) -> None:
    code, text = run(*PLAN, "--ends", "ends.json", copies=(COPY,))
    assert code == 0
    assert "the ends are those of 1970-01-01T00:00:01Z" in text
    assert (
        "  returning so far: at most 50 records\n  duplicates with this plan: at most 0\n" in text
    )
    assert "  duplicates without it: 100\n" in text
    assert "never returns, by policy or filter: audit.log" in text
    assert "eu->us is not configured: taken to be as us->eu is" in text
    assert '{"offset":99}' in (tmp_path / "positions").read_text()


def test_start_that_is_not_known_is_an_exit_code_of_its_own(run: Any) -> None:
    code, text = run(*PLAN, "--moved-at", "2026-11-01T00:00Z", copies=(CopyFacts(0, 150),))
    assert code == 1
    assert "no start, its position stays: orders-0 (its end was not recorded" in text


def test_records_that_stay_on_the_source_are_named(run: Any) -> None:
    """They were acknowledged there and not copied: a failover that was not planned."""
    behind = replace(COPY, sync=Sync(), source_end=120)
    _, text = run(*PLAN, "--ends", "ends.json", copies=(behind,))
    assert "at most 20 records of us may not have been copied when the consumers moved" in text


def test_ends_are_recorded_once(run: Any, tmp_path: Path) -> None:
    code, text = run("record", "--flow", "us->eu", "--out", "ends.json")
    assert (code, "exists: expected a new file" in text) == (2, True)
    assert (tmp_path / "ends.json").read_text() == ENDS


def test_end_of_a_copy_with_other_records_is_not_recorded(run: Any, tmp_path: Path) -> None:
    written, stated = CopyFacts(0, 150, Sync(), source_end=100), CopyFacts(0, 7)
    copies = (written, stated, replace(written, end=91, source_end=91))
    code, text = run("record", "--flow", "us->eu", "--out", "new.json", copies=copies)
    assert code == 1
    assert "us->eu: the ends of 3 partitions of 1 topic are in new.json" in text
    assert "others have written to already, not recorded: orders-0\n" in text
    assert "nothing but MirrorMaker 2 may have written there yet: orders-1\n" in text
    recorded = failback._read_ends(tmp_path / "new.json")
    found = recorded.topics["orders"].partitions
    assert [(each.end, each.proved) for each in found] == [(None, False), (7, False), (91, True)]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("plan", "--flow", "us->asia", "--out", "x", *ENDED), "us->asia"),
        ((*PLAN, "--ends", "none.json"), "cannot read 'none.json'"),
        ((*PLAN, "--ends", "mm2slo.yaml"), "has no recorded ends; expected the file of mm2slo"),
        (("plan", "--flow", "us->eu", "--out", "no/x", *ENDED), "cannot write 'no/x'"),
        (PLAN, "expected either --ends or --moved-at: when did the consumers move?"),
        ((*PLAN[:-1], "ends.json", *ENDED), "has the recorded ends: expected another file"),
    ],
)
def test_mistakes_are_one_sentence(run: Any, arguments: tuple[str, ...], expected: str) -> None:
    code, text = run(*arguments)
    assert code == 2
    assert expected in text
    assert "Traceback" not in text


def test_ends_of_another_flow_are_refused(run: Any) -> None:
    Path("ends.json").write_text(ENDS.replace("us->eu", "eu->us"))
    code, text = run(*PLAN, "--ends", "ends.json")
    assert (code, "'ends.json' is of eu->us: expected us->eu" in text) == (2, True)
