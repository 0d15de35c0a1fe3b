"""`kill -9` of mm2slo logship at random moments, with events compared one by one."""

import json
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from cli_process import run_mm2slo
from fake_hec import FakeHec, Fault, HecToken
from log_shipping import LogWriter

from mm2slo_lab.managed_process import wait_for

_TIMEOUT = 120
_BATCH = 1_000
_LINES = 1_500
"""Written per kill."""


def _config(folder: Path, url: str, *, acknowledge: bool = False) -> Path:
    (folder / "token").write_text("token-1")
    (folder / "token").chmod(0o600)
    section = {
        "endpoints": [url],
        "token_file": str(folder / "token"),
        "sources": [{"paths": [str(folder / "logs" / "mm2.log*")]}],
        "state_dir": str(folder / "state"),
        "linger": "20ms",
        "listen": "127.0.0.1:0",
        "acknowledge": acknowledge,
    }
    clusters = {alias: {"bootstrap_servers": "localhost:1"} for alias in ("us", "eu")}
    document = {"clusters": clusters, "flows": [{"flow": "us->eu"}], "logship": section}
    path = folder / "mm2slo.yaml"
    path.write_text(json.dumps(document))
    return path


def _kill_once(config: Path, fake: FakeHec, moments: random.Random) -> None:
    """Start the command, and kill it at a moment around its first requests."""
    before = len(fake.requests)
    command = [sys.executable, "-m", "mm2slo_cli", "logship", "--config", str(config)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            wait_for(
                lambda: len(fake.requests) > before or process.poll() is not None,
                "a request", _TIMEOUT, poll=0.001,
            )  # fmt: skip
            time.sleep(moments.uniform(0.0, 0.15))
        finally:
            process.kill()
        assert process.wait(30) == -9, process.stderr and process.stderr.read().decode()


def _ship_with_kills(folder: Path, fake: FakeHec, kills: int, *, acknowledge: bool = False) -> int:
    """Returns how many lines were written; all of them are indexed then."""
    (folder / "logs").mkdir()
    config = _config(folder, fake.url, acknowledge=acknowledge)
    moments = random.Random(kills)
    with LogWriter(folder / "logs", seed=kills) as writer:
        for _ in range(kills):
            writer.limit += _LINES
            _kill_once(config, fake, moments)
    log = folder / "log"
    with run_mm2slo(log, "logship", "--config", str(config)):
        # All lines may have arrived before a kill, and this process is stopped at once.
        wait_for(lambda: b"shipping to" in log.read_bytes(), "its start", _TIMEOUT)
        _wait_for(fake, writer.lines)
    return writer.lines


def _wait_for(fake: FakeHec, lines: int) -> None:
    seen: set[int] = set()
    position = 0

    def all_arrived() -> bool:
        nonlocal position
        new = fake.index.events[position:]
        seen.update(each["event"]["n"] for each in new)
        position += len(new)
        return len(seen) >= lines

    wait_for(all_arrived, f"{lines} lines", _TIMEOUT)


def _assert_none_lost(fake: FakeHec, lines: int) -> Counter[str]:
    """Returns how often each event arrived, by its uid."""
    uids: dict[int, set[str]] = {}
    for event in fake.events:
        uids.setdefault(event["n"], set()).add(event["event_uid"])
    assert sorted(uids) == list(range(lines))
    assert [n for n, found in uids.items() if len(found) > 1] == []
    counts = Counter(event["event_uid"] for event in fake.events)
    assert len(counts) == lines
    return counts


@pytest.mark.parametrize("kills", [4, pytest.param(200, marks=pytest.mark.long)])
def test_kills_lose_nothing_and_repeat_at_most_a_batch_each(tmp_path: Path, kills: int) -> None:
    with FakeHec() as fake:
        lines = _ship_with_kills(tmp_path, fake, kills)

    counts = _assert_none_lost(fake, lines)
    repeated = counts.total() - len(counts)
    print(f"{kills} kills, {lines} events, {repeated} repeated")
    assert repeated <= kills * _BATCH


@pytest.mark.parametrize("kills", [2, pytest.param(50, marks=pytest.mark.long)])
def test_kills_with_acknowledgement_lose_nothing(tmp_path: Path, kills: int) -> None:
    with FakeHec({"token-1": HecToken(has_ack=True)}) as fake:
        lines = _ship_with_kills(tmp_path, fake, kills, acknowledge=True)

    _assert_none_lost(fake, lines)


@pytest.mark.long
def test_kills_among_failing_answers_lose_nothing(tmp_path: Path) -> None:
    kinds = [Fault.code(9), Fault(), Fault(indexes=True), Fault.code(26, Retry_After="0")]
    draw = random.Random(1)
    with FakeHec() as fake:
        fake.faults.extend(
            draw.choice(kinds) if draw.random() < 0.2 else Fault.code(24) for _ in range(20)
        )
        lines = _ship_with_kills(tmp_path, fake, 20)

    _assert_none_lost(fake, lines)
