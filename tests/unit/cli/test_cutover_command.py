"""`mm2slo cutover`: what it prints, and how long it waits; the clusters are prepared evidence."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_process import run_main
from cutover_samples import SAFE, cutover_group

from mm2slo_cli import cutover
from mm2slo_core.cutover.cutover_evidence import Cases, CutoverEvidence

CONFIG = """
clusters:
  us: {bootstrap_servers: "127.0.0.1:1"}
  eu: {bootstrap_servers: "127.0.0.1:2"}
flows: [{flow: us->eu}]
audit: {store: "sqlite:///STORE"}
"""


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Runs the command with these pieces of evidence, the last of them again and again."""
    config = tmp_path / "mm2slo.yaml"
    config.write_text(CONFIG.replace("STORE", str(tmp_path / "store.db")))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(cutover, "_ASK_SECONDS", 0.01)

    def call(*arguments: str, evidence: tuple[CutoverEvidence | None, ...] = (SAFE,)) -> Any:
        given = list(evidence)

        @contextmanager
        def observed(*_: object) -> Iterator[Callable[[], CutoverEvidence | None]]:
            yield lambda: given.pop(0) if len(given) > 1 else given[0]

        monkeypatch.setattr(cutover, "observed", observed)
        command = ["cutover", "check", "--config", str(config), "--flow", "us->eu"]
        code = run_main(monkeypatch, *command, *arguments)
        found = capsys.readouterr()
        return code, found.out + found.err

    return call


ACCEPTED = ("--accept", "audit=change 42")


def test_go_as_soon_as_everything_passes(run: Any) -> None:
    running = replace(SAFE, frozen_from=SAFE.at - 40)
    code, text = run("--phase", "go", *ACCEPTED, evidence=(None, running, SAFE))
    assert code == 0
    assert text.splitlines()[0] == "us->eu, go: GO"
    assert "accepted: change 42" in text


def test_failing_and_unknown_checks_with_their_next_steps(run: Any) -> None:
    written = replace(
        SAFE,
        frozen_from=SAFE.at - 4,
        written=Cases(1, ("orders: 4 s ago",)),
        written_at=SAFE.at - 4,
        behind=Cases(22, ("orders-0: 3 records, by live",)),
        groups=(cutover_group(remaining=3),),
    )
    code, text = run("--phase", "go", "--wait", "0s", evidence=(written,))
    assert code == 1
    assert max(map(len, text.splitlines())) <= 80
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0] == "us->eu, go: NO GO"
    assert lines[1].startswith("fail producers 1 topic written to")
    assert "orders: 4 s ago" in lines
    assert any(line.startswith("next: stop their producers") for line in lines)
    assert "(because of producers)" in " ".join(lines)
    assert "and 21 more" in lines


def test_unknown_exits_with_3(run: Any) -> None:
    code, text = run("--phase", "go", "--wait", "0s")
    assert (code, "NO GO (unknown)" in text) == (3, True)
    assert "the flow was not audited" in " ".join(text.split())


def test_json_is_the_answer_of_the_report_service(run: Any) -> None:
    code, text = run("--phase", "go", "--json", *ACCEPTED)
    found = json.loads(text)
    assert (code, found["go"], found["phase"]) == (0, True, "go")
    (audit,) = (each for each in found["checks"] if each["name"] == "audit")
    assert audit["accepted"] == [{"item": None, "reason": "change 42", "matches": True}]


def test_acceptance_that_fits_no_item_is_shown_as_such(run: Any) -> None:
    _, text = run("--phase", "go", *ACCEPTED, "--accept", "source_groups/shp=x")
    assert "accepted: shp: x (no failing item has this name)" in " ".join(text.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--phase", "go", "--flow", "us->ap"), "'us->ap' is not a configured flow"),
        (("--phase", "go", "--accept", "lag=x"), "there is no check 'lag' in phase go"),
        (("--phase", "go", "--accept", "audit"), "expected CHECK=REASON"),
        (("--phase", "go", "--freeze", "soon"), "--freeze 'soon'"),
    ],
)
def test_bad_input_is_one_sentence_and_never_go(
    run: Any, arguments: tuple[str, ...], message: str
) -> None:
    code, text = run(*arguments)
    assert code == 2
    assert message in text
    assert len(text.splitlines()) == 1


def test_clusters_that_are_never_read_are_an_error(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutover, "_MORE_SECONDS", 0.05)
    code, text = run("--phase", "go", evidence=(None,))
    assert (code, "were not read within" in text) == (2, True)


def test_wait_is_not_exceeded_for_a_cluster_that_cannot_be_read(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutover, "_MORE_SECONDS", 5.0)
    away = replace(SAFE, unreadable=("us",), waiting_for=("source offsets",), access=None)
    started = time.monotonic()
    code, _ = run("--phase", "go", "--wait", "0s", evidence=(away,))
    assert code == 3
    assert time.monotonic() - started < 4


def test_unreachable_clusters_are_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The observer itself, without clusters."""
    from mm2slo_core.config.config_loader import load_config
    from mm2slo_core.topology import Flow
    from mm2slo_lab.managed_process import wait_for

    config = load_config(CONFIG.replace("STORE", str(tmp_path / "store.db")))
    with cutover.observed(config, Flow("us", "eu")) as evidence:
        wait_for(lambda: evidence() is not None, "a round")
        seen = evidence()
    assert seen is not None
    assert set(seen.unreadable) == {"us", "eu"}
    assert "source offsets" in seen.waiting_for
