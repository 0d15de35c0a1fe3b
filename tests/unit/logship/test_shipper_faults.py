"""What Splunk, the network and the disk may do; events are compared one by one."""

import errno
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
import urllib3
from fake_hec import FakeHec, Fault, HecToken
from log_shipping import make_settings, make_source, running_shipper, value

from mm2slo_core.user_errors import UserError
from mm2slo_lab.managed_process import wait_for
from mm2slo_logship import event_delivery, hec_client
from mm2slo_logship.event_delivery import Endpoints
from mm2slo_logship.hec_client import HecClient
from mm2slo_logship.hec_protocol import AnswerAction, HecAnswer
from mm2slo_logship.ship_state import DeadLetters

_TIMEOUT = 60


@pytest.fixture
def fake() -> Iterator[FakeHec]:
    with FakeHec() as server:
        yield server


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_delivery, "_LONGEST_DELAY", 0.2)
    monkeypatch.setattr(event_delivery, "_PROBE_INTERVAL", 0.3)
    monkeypatch.setattr(event_delivery, "_TOKEN_INTERVAL", 0.1)
    monkeypatch.setattr(event_delivery, "_DISK_INTERVAL", 0.1)
    monkeypatch.setattr(event_delivery, "_SLOW_DOWN", 0.1)


def _write(path: Path, start: int, end: int, **more: object) -> None:
    with path.open("a") as log:
        log.writelines(json.dumps({"n": n, **more}) + "\n" for n in range(start, end))


def _numbers(fake: FakeHec) -> list[int]:
    return [event["n"] for event in fake.events]


def _wait(fake: FakeHec, count: int) -> None:
    fake.index.wait_for(
        lambda events: len({e["event"].get("n") for e in events}) >= count, _TIMEOUT
    )


def _until(condition: Callable[[], bool]) -> None:
    wait_for(condition, "the shipper", _TIMEOUT, poll=0.02)


def _spoil(fake: FakeHec, bad: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the events with the numbers *bad* arrive as invalid ones."""
    taken = fake.index.take

    def take(token: HecToken, channel: str | None, body: bytes) -> object:
        lines = body.splitlines(keepends=True)
        spoiled = [
            b'{"event":""}\n' if json.loads(line)["event"]["n"] in bad else line for line in lines
        ]
        return taken(token, channel, b"".join(spoiled))

    monkeypatch.setattr(fake.index, "take", take)


def test_shipper_events_arrive_once_and_in_order(fake: FakeHec, tmp_path: Path) -> None:
    _write(tmp_path / "mm2.log", 0, 2500)
    settings = make_settings(tmp_path, [fake.url], make_source(tmp_path / "mm2.log"))

    with running_shipper(settings) as metrics:
        _wait(fake, 2500)
        _write(tmp_path / "mm2.log", 2500, 2600)
        _wait(fake, 2600)
        _until(lambda: value(metrics, "unsent_bytes") == 0)

    with running_shipper(settings):
        _write(tmp_path / "mm2.log", 2600, 2601)
        _wait(fake, 2601)
    assert _numbers(fake) == list(range(2601))
    assert len({event["event_uid"] for event in fake.events}) == 2601
    assert value(metrics, "events_sent_total") == 2600


@pytest.mark.parametrize(
    "faults",
    [
        [Fault.code(9)] * 3,
        [Fault.code(26, Retry_After="0")] * 3,
        [Fault.code(8), Fault.code(23), Fault.html(502)],
        [Fault.code(24)],
        [Fault.html(303, Location="http://127.0.0.1:1/")],
        [Fault.html(404), Fault.html(405), Fault.code(7)],
        [Fault()] * 3,
        [Fault(delay=0.2)],
    ],
)
def test_shipper_failure_without_acceptance_loses_and_duplicates_nothing(
    fake: FakeHec, tmp_path: Path, faults: list[Fault]
) -> None:
    _write(tmp_path / "mm2.log", 0, 50)
    fake.faults.extend(faults)
    settings = make_settings(tmp_path, [fake.url], make_source(tmp_path / "mm2.log"))

    with running_shipper(settings):
        _wait(fake, 50)

    assert _numbers(fake) == list(range(50))


def test_endpoints_retry_after_of_0_does_not_end_the_back_off() -> None:
    client = cast(HecClient, object())
    endpoints = Endpoints([client])
    busy = HecAnswer(action=AnswerAction.RETRY, status=503, retry_after=0.0)

    assert sum(endpoints.failed(client, busy) for _ in range(100)) > 1.0
    later = HecAnswer(action=AnswerAction.RETRY, status=503, retry_after=9.0)
    assert endpoints.failed(client, later) == 9.0


@pytest.mark.parametrize(
    "fault",
    [
        Fault(indexes=True),
        Fault(status=200, body=b'{"code":0}', indexes=True, is_cut=True),
        Fault(status=200, body=b"<html>", indexes=True),
    ],
)
def test_shipper_lost_answer_repeats_one_batch_with_the_same_uids(
    fake: FakeHec, tmp_path: Path, fault: Fault
) -> None:
    _write(tmp_path / "mm2.log", 0, 50)
    fake.faults.append(fault)
    settings = make_settings(tmp_path, [fake.url], make_source(tmp_path / "mm2.log"))

    with running_shipper(settings) as metrics:
        fake.index.wait_for(lambda events: len(events) == 100, _TIMEOUT)

    assert _numbers(fake) == [*range(50), *range(50)]
    assert len({event["event_uid"] for event in fake.events}) == 50
    assert value(metrics, "possible_duplicates_total") == 50


def test_shipper_invalid_events_become_dead_letters_and_all_others_arrive_once(
    tmp_path: Path, fake: FakeHec, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(tmp_path / "mm2.log", 0, 300)
    bad = {0, 7, 150, 299}
    _spoil(fake, bad, monkeypatch)
    settings = make_settings(tmp_path, [fake.url], make_source(tmp_path / "mm2.log"))

    with running_shipper(settings) as metrics:
        _until(lambda: value(metrics, "dead_letters_total", code="13") == 4)
        _wait(fake, 296)

    assert _numbers(fake) == [n for n in range(300) if n not in bad]
    letters = list(DeadLetters(tmp_path / "state" / "dead-letters", 1 << 20))
    assert [json.loads(each.envelope)["event"]["n"] for each in letters] == sorted(bad)
    assert letters[0].reason == "HTTP 400, code 13: Event field cannot be blank"


def test_shipper_body_over_the_limit_of_splunk_is_halved(tmp_path: Path) -> None:
    _write(tmp_path / "mm2.log", 0, 900, text="x" * 900)
    with FakeHec(max_bytes=300_000) as fake:
        settings = make_settings(tmp_path, [fake.url], make_source(tmp_path / "mm2.log"))
        with running_shipper(settings) as metrics:
            _wait(fake, 900)

    assert _numbers(fake) == list(range(900))
    assert value(metrics, "dead_letters_total", code="6") == 0


def test_shipper_single_event_that_is_too_large_becomes_a_dead_letter(
    fake: FakeHec, tmp_path: Path
) -> None:
    _write(tmp_path / "mm2.log", 0, 3)
    fake.faults.extend([Fault.html(413)] * 2)
    settings = make_settings(tmp_path, [fake.url], make_source(tmp_path / "mm2.log"))

    with running_shipper(settings) as metrics:
        _wait(fake, 2)

    assert _numbers(fake) == [1, 2]
    assert value(metrics, "dead_letters_total", code="none") == 1


@pytest.mark.parametrize("code", [1, 3, 4])  # 401 with 3, 403 with the others
def test_shipper_rejected_token_holds_until_it_is_rotated(tmp_path: Path, code: int) -> None:
    _write(tmp_path / "mm2.log", 0, 50)
    with FakeHec({"token-2": HecToken()}) as fake:
        fake.fault = Fault.code(code)
        settings = make_settings(tmp_path, [fake.url], make_source(tmp_path / "mm2.log"))
        with running_shipper(settings) as metrics:
            _until(lambda: value(metrics, "hold", index="default", code=str(code)) == 1)
            fake.fault = None
            (tmp_path / "token").write_text("token-2")
            _wait(fake, 50)
            _until(lambda: value(metrics, "hold", index="default", code=str(code)) == 0)

    assert _numbers(fake) == list(range(50))


def test_shipper_token_that_is_rotated_ends_the_hold_of_each_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_delivery, "_PROBE_INTERVAL", _TIMEOUT)
    names = ("a", "b", "c")
    sources = [make_source(tmp_path / f"{each}.log", index=each) for each in names]
    for position, each in enumerate(names):
        _write(tmp_path / f"{each}.log", position, position + 1)
    with (
        FakeHec({"token-2": HecToken()}) as fake,
        running_shipper(make_settings(tmp_path, [fake.url], *sources)) as metrics,
    ):
        _until(lambda: all(value(metrics, "hold", index=n, code="4") == 1 for n in names))
        (tmp_path / "token").write_text("token-2")
        fake.index.wait_for(lambda events: len(events) == 3, 20)


def test_shipper_answer_after_the_timeout_repeats_the_same_uids(
    fake: FakeHec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hec_client, "_TIMEOUT", urllib3.Timeout(connect=30.0, read=1.0))
    _write(tmp_path / "mm2.log", 0, 50)
    fake.faults.append(Fault(status=200, body=b'{"code":0}', indexes=True, delay=3.0))
    settings = make_settings(tmp_path, [fake.url], make_source(tmp_path / "mm2.log"))

    with running_shipper(settings) as metrics:
        fake.index.wait_for(lambda events: len(events) >= 100, _TIMEOUT)
        _until(lambda: value(metrics, "unsent_bytes") == 0)

    # A machine that stalls may miss the timeout again.
    assert set(Counter(event["event_uid"] for event in fake.events).values()) <= {2, 3, 4}
    assert set(_numbers(fake)) == set(range(50))
    assert value(metrics, "possible_duplicates_total") >= 50


def test_shipper_wrong_index_holds_that_index_alone(tmp_path: Path) -> None:
    _write(tmp_path / "a.log", 0, 10)
    _write(tmp_path / "b.log", 10, 20)
    with FakeHec({"token-1": HecToken(indexes=("right",))}) as fake:
        sources = [
            make_source(tmp_path / "a.log", index="wrong"),
            make_source(tmp_path / "b.log", index="right"),
        ]
        with running_shipper(make_settings(tmp_path, [fake.url], *sources)) as metrics:
            _until(lambda: value(metrics, "hold", index="wrong", code="7") == 1)
            _wait(fake, 10)

    assert _numbers(fake) == list(range(10, 20))


def test_shipper_outage_with_rotations_loses_nothing(fake: FakeHec, tmp_path: Path) -> None:
    log = tmp_path / "mm2.log"
    _write(log, 0, 100)
    settings = make_settings(tmp_path, [fake.url], make_source(log))
    with running_shipper(settings) as metrics:
        # Indexed is not yet answered: a stop in between would have the batch sent again.
        _until(lambda: value(metrics, "events_sent_total") == 100)
        fake.stop()
        for number in range(1, 4):
            _write(log, number * 100, number * 100 + 100)
            _until(lambda: value(metrics, "files") == number)  # noqa: B023
            log.rename(tmp_path / f"mm2.log.{number}")
            if number == 1:
                (tmp_path / "mm2.log.1").unlink()
        _write(log, 400, 500)
        fake.start()
        _wait(fake, 500)

    assert sorted(_numbers(fake)) == list(range(500))
    assert value(metrics, "lost_bytes_total", reason="deleted") == 0


def test_shipper_file_rotated_during_a_request_is_shipped(fake: FakeHec, tmp_path: Path) -> None:
    log = tmp_path / "mm2.log"
    _write(log, 0, 50)
    fake.faults.append(Fault(status=200, body=b'{"code":0}', indexes=True, delay=6.0))
    settings = make_settings(tmp_path, [fake.url], make_source(log))
    with running_shipper(settings) as metrics:
        _until(lambda: len(fake.requests) == 1)
        log.rename(tmp_path / "old.1")
        _write(log, 50, 100)
        _until(lambda: value(metrics, "files") == 2)
        assert fake.events == []  # the request is still open
        log.rename(tmp_path / "old.2")
        _write(log, 100, 150)
        _wait(fake, 150)

    assert sorted(_numbers(fake)) == list(range(150))


def test_shipper_failed_endpoint_is_left_out(fake: FakeHec, tmp_path: Path) -> None:
    _write(tmp_path / "mm2.log", 0, 50)
    with FakeHec() as broken:
        broken.fault = Fault.code(9)
        urls = [broken.url, fake.url]
        settings = make_settings(tmp_path, urls, make_source(tmp_path / "mm2.log"))
        with running_shipper(settings):
            for number in range(1, 4):
                _wait(fake, 50 * number)
                _write(tmp_path / "mm2.log", 50 * number, 50 * number + 50)
            _wait(fake, 200)
        assert len(broken.requests) == 1

    assert _numbers(fake) == list(range(200))


def test_shipper_acknowledged_batches_move_the_checkpoint(tmp_path: Path) -> None:
    _write(tmp_path / "mm2.log", 0, 50)
    with FakeHec({"token-1": HecToken(has_ack=True)}) as fake:
        fake.index.acknowledges = False
        source = make_source(tmp_path / "mm2.log")
        settings = make_settings(tmp_path, [fake.url], source, has_ack=True)
        with running_shipper(settings) as metrics:
            _until(lambda: value(metrics, "pending_acks") == 1)
            assert value(metrics, "unsent_bytes") > 0
            fake.index.acknowledges = True
            _until(lambda: value(metrics, "unsent_bytes") == 0)
        with running_shipper(settings):
            _write(tmp_path / "mm2.log", 50, 51)
            _wait(fake, 51)

    assert _numbers(fake) == list(range(51))


def test_shipper_send_lag_is_that_of_the_oldest_event(fake: FakeHec, tmp_path: Path) -> None:
    _write(tmp_path / "mm2.log", 0, 2500)
    fake.faults.extend([Fault.code(8, Retry_After="2"), Fault.code(0), Fault.code(0)])
    settings = make_settings(tmp_path, [fake.url], make_source(tmp_path / "mm2.log"))
    with running_shipper(settings) as metrics:
        _until(lambda: value(metrics, "requests_total", status="500", code="8") == 1)
        fake.fault = Fault.code(9)
        _until(lambda: value(metrics, "events_sent_total") == 2000)
        _until(lambda: value(metrics, "requests_total", status="503", code="9") >= 1)
        assert value(metrics, "send_lag_seconds") >= 1.9
        fake.fault = None
        _until(lambda: value(metrics, "send_lag_seconds") == 0)
        assert value(metrics, "unsent_bytes") == 0


def test_shipper_batch_that_is_never_acknowledged_is_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mm2slo_logship.event_delivery._EXPIRY", 0.5)
    _write(tmp_path / "mm2.log", 0, 50)
    with FakeHec({"token-1": HecToken(has_ack=True)}) as fake:
        fake.index.acknowledges = False
        source = make_source(tmp_path / "mm2.log")
        with running_shipper(make_settings(tmp_path, [fake.url], source, has_ack=True)) as metrics:
            fake.index.wait_for(lambda events: len(events) >= 100, _TIMEOUT)
            fake.index.acknowledges = True
            _until(lambda: value(metrics, "unsent_bytes") == 0)

    assert len({event["event_uid"] for event in fake.events}) == 50


def test_shipper_batch_lost_in_a_restart_of_splunk_is_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_delivery, "_EXPIRY", 3.0)
    _write(tmp_path / "mm2.log", 0, 50)
    with FakeHec({"token-1": HecToken(has_ack=True)}) as fake:
        fake.index.acknowledges = False
        source = make_source(tmp_path / "mm2.log")
        with running_shipper(make_settings(tmp_path, [fake.url], source, has_ack=True)) as metrics:
            _until(lambda: value(metrics, "pending_acks") == 1)
            fake.stop()
            fake.index.forget()
            _write(tmp_path / "mm2.log", 50, 100)
            _until(lambda: value(metrics, "requests_total", status="0", code="none") >= 1)
            fake.start()
            _until(lambda: value(metrics, "pending_acks") == 2)
            fake.index.acknowledges = True
            _until(lambda: value(metrics, "unsent_bytes") == 0)

    assert set(_numbers(fake)) == set(range(100))


def test_shipper_token_without_acknowledgement_ships_without(fake: FakeHec, tmp_path: Path) -> None:
    _write(tmp_path / "mm2.log", 0, 50)
    source = make_source(tmp_path / "mm2.log")

    with running_shipper(make_settings(tmp_path, [fake.url], source, has_ack=True)) as metrics:
        _wait(fake, 50)
        _until(lambda: value(metrics, "unsent_bytes") == 0)

    assert _numbers(fake) == list(range(50))


def test_shipper_invalid_event_does_not_end_acknowledgement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(tmp_path / "mm2.log", 0, 50)
    with FakeHec({"token-1": HecToken(has_ack=True)}) as fake:
        fake.index.acknowledges = False
        _spoil(fake, {2}, monkeypatch)
        source = make_source(tmp_path / "mm2.log")
        with running_shipper(make_settings(tmp_path, [fake.url], source, has_ack=True)) as metrics:
            _until(lambda: value(metrics, "dead_letters_total", code="13") == 1)
            _until(lambda: value(metrics, "pending_acks") >= 1)
            fake.index.acknowledges = True
            _until(lambda: value(metrics, "unsent_bytes") == 0)

    assert _numbers(fake) == [n for n in range(50) if n != 2]


def test_shipper_full_disk_stops_sending_until_it_has_room(fake: FakeHec, tmp_path: Path) -> None:
    log, state = tmp_path / "mm2.log", tmp_path / "state"
    _write(log, 0, 10)
    state.mkdir()
    blocked = state / "checkpoints.tmp"
    blocked.symlink_to("/dev/full")
    settings = make_settings(tmp_path, [fake.url], make_source(log))

    with running_shipper(settings) as metrics:
        _wait(fake, 10)
        _write(log, 10, 20)
        # A second write of the checkpoints after the first failed: nothing was sent between.
        _until(lambda: value(metrics, "unsent_bytes") > 0)
        assert len(fake.requests) == 1
        blocked.unlink()
        _wait(fake, 20)

    assert _numbers(fake) == list(range(20))


def test_shipper_full_disk_keeps_a_dead_letter_until_it_has_room(
    fake: FakeHec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(tmp_path / "mm2.log", 0, 50)
    _spoil(fake, {20}, monkeypatch)
    is_full, refused, add = True, 0, DeadLetters.add

    def add_if_not_full(letters: DeadLetters, envelope: bytes, reason: str) -> int:
        nonlocal refused
        if is_full:
            refused += 1
            raise OSError(errno.ENOSPC, "No space left on device")
        return add(letters, envelope, reason)

    monkeypatch.setattr(DeadLetters, "add", add_if_not_full)
    settings = make_settings(tmp_path, [fake.url], make_source(tmp_path / "mm2.log"))

    with running_shipper(settings):
        _until(lambda: refused >= 2)
        assert _numbers(fake) == list(range(20))
        is_full = False
        _wait(fake, 49)

    assert _numbers(fake) == [n for n in range(50) if n != 20]
    (letter,) = DeadLetters(tmp_path / "state" / "dead-letters", 1 << 20)
    assert json.loads(letter.envelope)["event"]["n"] == 20


def test_shipper_second_process_with_the_same_state_is_refused(
    fake: FakeHec, tmp_path: Path
) -> None:
    settings = make_settings(tmp_path, [fake.url], make_source(tmp_path / "mm2.log"))

    with (
        running_shipper(settings),
        pytest.raises(UserError, match="is in use by another mm2slo logship"),
        running_shipper(settings),
    ):
        pass


def test_shipper_truncation_is_reported_in_splunk(fake: FakeHec, tmp_path: Path) -> None:
    log = tmp_path / "mm2.log"
    _write(log, 0, 50)
    with running_shipper(make_settings(tmp_path, [fake.url], make_source(log))) as metrics:
        _wait(fake, 50)
        log.write_text('{"n": 50}\n')
        _wait(fake, 51)
        _until(lambda: any(event.get("event_action") for event in fake.events))

    (loss,) = (event for event in fake.events if event.get("event_action"))
    assert (loss["event_action"], loss["reason"], loss["bytes"]) == ("logs_lost", "truncated", 0)
    assert (loss["level"], loss["message"]) == (
        "INFO", f"{log} was truncated: no line that was read is lost"
    )  # fmt: skip
    assert value(metrics, "lost_files_total", reason="truncated") == 1


def test_shipper_stops_while_splunk_is_down(fake: FakeHec, tmp_path: Path) -> None:
    _write(tmp_path / "mm2.log", 0, 50)
    fake.stop()
    settings = make_settings(tmp_path, [fake.url], make_source(tmp_path / "mm2.log"))

    with running_shipper(settings) as metrics:
        _until(lambda: value(metrics, "requests_total", status="0", code="none") >= 1)
    fake.start()
    with running_shipper(settings):
        _wait(fake, 50)

    assert _numbers(fake) == list(range(50))
