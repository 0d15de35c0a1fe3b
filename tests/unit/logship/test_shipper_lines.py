"""What log files may contain; lines and events are compared one by one."""

import itertools
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_hec import FakeHec
from log_shipping import make_settings, make_source, running_shipper, value

from mm2slo_lab.managed_process import wait_for
from mm2slo_logship.log_events import Parser, ParserSettings
from mm2slo_logship.tailed_file import MAX_LINE

_TIMEOUT = 120
_STAMP = "2026-11-22T17:10:39.123456Z"


@pytest.fixture
def fake() -> Iterator[FakeHec]:
    with FakeHec() as server:
        yield server


def _line(**fields: object) -> bytes:
    return json.dumps({"timestamp": _STAMP, "level": "INFO", **fields}).encode()


def test_shipper_file_name_that_is_not_utf8_is_replaced(fake: FakeHec, tmp_path: Path) -> None:
    log = tmp_path / os.fsdecode(b"mm2-\xff.log")
    log.write_bytes(_line(n=1) + b"\n")
    (tmp_path / "mm2-other.log").write_bytes(_line(n=2) + b"\n")
    settings = make_settings(tmp_path, [fake.url], make_source(tmp_path / "*.log"))
    with running_shipper(settings):
        fake.index.wait_for(lambda events: len(events) >= 2, _TIMEOUT)
    log.write_bytes(_line(n=3) + b"\n" + _line(n=4) + b"\n")
    with running_shipper(settings):
        fake.index.wait_for(lambda events: len(events) >= 4, _TIMEOUT)

    assert {each["source"] for each in fake.index.events[:2]} == {
        str(tmp_path / name) for name in ("mm2-\ufffd.log", "mm2-other.log")
    }


def _ship(fake: FakeHec, folder: Path, lines: list[bytes]) -> list[dict[str, Any]]:
    """Ship *lines* among ordinary ones; returns the envelopes of *lines*.

    All lines must arrive once, in order.
    """
    log, mixed = folder / "mm2.log", []
    for number, line in enumerate(lines):
        mixed += [_line(message=f"before {number}"), line]
    mixed.append(_line(message="the last"))
    log.write_bytes(b"".join(line + b"\n" for line in mixed))
    starts = list(itertools.accumulate((len(line) + 1 for line in mixed[:-1]), initial=0))
    source = make_source(log, parser=lambda: Parser(ParserSettings()))
    with running_shipper(make_settings(folder, [fake.url], source)) as metrics:
        fake.index.wait_for(lambda events: len(events) >= len(mixed), _TIMEOUT)
        wait_for(lambda: value(metrics, "unsent_bytes") == 0, "the checkpoint", _TIMEOUT)
    uids = [each["event"]["event_uid"] for each in fake.index.events]
    assert [int(uid.rpartition("-")[2]) for uid in uids] == starts
    ordinary = [each["event"]["message"] for each in fake.index.events[::2]]
    assert ordinary == [*(f"before {n}" for n in range(len(lines))), "the last"]
    assert sum(value(metrics, "dead_letters_total", code=code) for code in ("6", "12", "13")) == 0
    return fake.index.events[1::2]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (_line(message="caf\xe9").replace(rb"\u00e9", b"\xe9"), "caf\ufffd"),
        (b"\xff\xfe\xc3\x28", "\ufffd\ufffd\ufffd("),
        (_line(message="a#b").replace(b"#", b"\0"), "ab"),
        (b"\0\0text\0", "text"),
        (b'{"message": "cut', '{"message": "cut'),
        (b'{"message": "a"} {"message": "b"}', '{"message": "a"} {"message": "b"}'),
        (b"[1, 2]", "[1, 2]"),
        (b'{"message": NaN}', '{"message": NaN}'),
        (_line(message="a\ud800b"), _line(message="a\ud800b").decode()),
        (_line(message="line\x0bend\x85\u2028x"), "lineend\x85\u2028x"),
    ],
)
def test_hostile_line_arrives_once_among_others(
    fake: FakeHec, tmp_path: Path, line: bytes, message: str
) -> None:
    (envelope,) = _ship(fake, tmp_path, [line])

    assert envelope["event"]["message"] == message


def test_lines_of_10_mb_are_cut_and_arrive_once(fake: FakeHec, tmp_path: Path) -> None:
    long = _line(message="x" * 10_000_000)
    found = _ship(fake, tmp_path, [long, b"y" * 10_000_000, long])

    assert [each["event"]["truncated"] for each in found] == [True] * 3
    assert all(len(json.dumps(each)) < MAX_LINE for each in found)


@pytest.mark.parametrize(
    ("stamp", "sent"),
    [
        ("2026-11-22T17:10:38Z", 1795367438.0),  # earlier than the line before
        ("2019-01-01T00:00:00Z", 1546300800.0),
        ("2099-01-01T00:00:00Z", 4070908800.0),
        ("1969-12-31T23:59:59Z", None),
        ("9999-12-31T23:59:59Z", None),
        ("2026-02-30T00:00:00Z", None),
        ("1.79E9", None),
        ("", None),
    ],
)
def test_time_of_a_clock_that_jumped_is_sent_or_left_to_splunk(
    fake: FakeHec, tmp_path: Path, stamp: str, sent: float | None
) -> None:
    (envelope,) = _ship(fake, tmp_path, [json.dumps({"timestamp": stamp, "message": "a"}).encode()])

    assert envelope.get("time") == sent
    assert envelope["event"]["message"] == "a"


def test_jumps_of_the_system_clock_lose_and_repeat_nothing(
    fake: FakeHec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jumps = itertools.cycle([0.0, 4e9, 1e9, -5.0, 2e9])
    monkeypatch.setattr(time, "time", lambda: next(jumps))

    _ship(fake, tmp_path, [_line(message=str(number)) for number in range(3_000)])
