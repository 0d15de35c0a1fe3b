import errno
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from log_shipping import (
    BracketParser,
    RecordedLosses,
    StoppedClock,
    make_source,
    make_watch,
    read_all,
    save_checkpoints,
)

from mm2slo_logship.file_watch import FileWatch
from mm2slo_logship.log_events import Parser, ParserSettings
from mm2slo_logship.log_files import PlainContent
from mm2slo_logship.ship_state import Checkpoints


def _append(path: Path, *numbers: int) -> None:
    with path.open("a") as log:
        log.writelines(json.dumps({"n": number}) + "\n" for number in numbers)


def _numbers(events: list[dict[str, Any]]) -> list[int]:
    return [event["n"] for event in events]


def test_watch_new_file_is_read_from_its_start(tmp_path: Path) -> None:
    watch = make_watch(make_source(tmp_path / "*.log"), tmp_path / "state")
    watch.refresh()
    assert read_all(watch) == []

    _append(tmp_path / "mm2.log", 1, 2)
    watch.refresh()

    assert _numbers(read_all(watch)) == [1, 2]


def test_watch_after_restart_continues_at_the_checkpoint(tmp_path: Path) -> None:
    log, state = tmp_path / "mm2.log", tmp_path / "state"
    _append(log, 1, 2)
    watch = make_watch(make_source(log), state)
    watch.refresh()
    read_all(watch)
    watch.close()
    _append(log, 3)

    again = make_watch(make_source(log), state)
    again.refresh()

    assert _numbers(read_all(again)) == [3]


def test_watch_events_read_again_have_the_same_uid(tmp_path: Path) -> None:
    log, state = tmp_path / "mm2.log", tmp_path / "state"
    _append(log, 1, 2)
    uids = []
    for _ in range(2):
        watch = make_watch(make_source(log), state)
        watch.refresh()
        uids.append([event["event_uid"] for event in read_all(watch, accept=False)])
        watch.close()
        _append(log, 3)

    assert uids[0] == uids[1][:2]
    assert len(set(uids[1])) == 3


def test_watch_field_of_a_line_does_not_replace_the_uid(tmp_path: Path) -> None:
    (tmp_path / "mm2.log").write_text('{"event_uid": "mine"}\n' * 2)
    watch = make_watch(make_source(tmp_path / "mm2.log"), tmp_path / "state")
    watch.refresh()

    uids = {event["event_uid"] for event in read_all(watch)}

    assert len(uids - {"mine"}) == 2


def test_watch_renamed_file_is_read_to_its_end_before_it_is_closed(tmp_path: Path) -> None:
    log, clock = tmp_path / "mm2.log", StoppedClock()
    watch = make_watch(make_source(log), tmp_path / "state", clock=clock)
    _append(log, 1)
    watch.refresh()
    read_all(watch)
    log.rename(tmp_path / "mm2.log.1")
    _append(log, 3)
    watch.refresh()
    _append(tmp_path / "mm2.log.1", 2)  # a writer that has not reopened its log yet

    assert _numbers(read_all(watch, now=clock.now)) == [2, 3]
    assert len(watch.files) == 2
    clock.now += 6
    read_all(watch, now=clock.now)
    watch.refresh()
    assert [file.path for file in watch.files] == [log]


def test_watch_file_rotated_while_stopped_is_found_by_its_inode(tmp_path: Path) -> None:
    log, state = tmp_path / "mm2.log", tmp_path / "state"
    _append(log, 1)
    watch = make_watch(make_source(log), state)
    watch.refresh()
    read_all(watch)
    watch.close()
    _append(log, 2)
    log.rename(tmp_path / "mm2.log.2026-11-22")
    _append(log, 3)

    again = make_watch(make_source(log), state)
    again.refresh()

    assert sorted(_numbers(read_all(again))) == [2, 3]


def test_watch_file_compressed_while_stopped_continues_in_the_archive(tmp_path: Path) -> None:
    log, state, losses = tmp_path / "mm2.log", tmp_path / "state", RecordedLosses()
    _append(log, 1)
    watch = make_watch(make_source(log), state)
    watch.refresh()
    read_all(watch)
    watch.close()
    _append(log, 2)
    (tmp_path / "mm2.log.1.gz").write_bytes(gzip.compress(log.read_bytes()))
    (tmp_path / "other.gz").write_bytes(gzip.compress(b'{"n": 99}\n'))
    log.unlink()
    _append(log, 3)

    again = make_watch(make_source(log), state, losses=losses)
    again.refresh()

    assert sorted(_numbers(read_all(again))) == [2, 3]
    assert losses.found == []


def test_watch_file_deleted_while_stopped_is_reported_with_its_unsent_bytes(
    tmp_path: Path,
) -> None:
    log, state, losses = tmp_path / "mm2.log", tmp_path / "state", RecordedLosses()
    _append(log, 1)
    watch = make_watch(make_source(log), state)
    watch.refresh()
    read_all(watch)
    _append(log, 2, 3)
    watch.refresh()
    save_checkpoints(watch)
    watch.close()
    log.unlink()

    again = make_watch(make_source(log), state, losses=losses)
    again.refresh()
    again.refresh()

    assert losses.found == [("mm2.log", "deleted", 18)]
    assert again.files == ()


def test_watch_deleted_file_stays_readable_within_the_limit(tmp_path: Path) -> None:
    log, losses = tmp_path / "mm2.log", RecordedLosses()
    watch = make_watch(make_source(log), tmp_path / "state", losses=losses, max_deleted_bytes=20)
    _append(log, 1, 2)
    watch.refresh()
    log.unlink()
    watch.refresh()

    assert _numbers(read_all(watch, accept=False)) == [1, 2]
    _append(log, 3)
    watch.refresh()
    log.unlink()
    watch.refresh()
    assert losses.found == [("mm2.log", "deleted", 18)]
    assert len(watch.files) == 1


def test_watch_truncated_file_starts_again_with_other_uids(tmp_path: Path) -> None:
    log, losses = tmp_path / "mm2.log", RecordedLosses()
    watch = make_watch(make_source(log), tmp_path / "state", losses=losses)
    _append(log, 1, 2)
    watch.refresh()
    first = read_all(watch)
    _append(log, 3)
    watch.refresh()
    log.write_text("")
    watch.refresh()
    _append(log, 1)
    watch.refresh()

    second = read_all(watch)

    assert _numbers(second) == [1]
    assert second[0]["event_uid"] not in {event["event_uid"] for event in first}
    assert losses.found == [("mm2.log", "truncated", 9)]


def test_watch_truncated_file_whose_events_are_being_sent_lost_nothing(tmp_path: Path) -> None:
    log, losses = tmp_path / "mm2.log", RecordedLosses()
    watch = make_watch(make_source(log), tmp_path / "state", losses=losses)
    _append(log, 1, 2)
    watch.refresh()
    read_all(watch, accept=False)
    watch.refresh()
    log.write_text('{"n": 3}\n')
    watch.refresh()

    assert losses.found == [("mm2.log", "truncated", 0)]


@pytest.mark.parametrize("number", [1, 300_000])
@pytest.mark.parametrize("is_cri", [False, True])
def test_watch_blank_lines_at_the_end_are_no_loss(
    tmp_path: Path, number: int, is_cri: bool
) -> None:
    start, log, losses = (
        b"2026-11-22T17:10:39Z stdout F " * is_cri,
        tmp_path / "a",
        RecordedLosses(),
    )
    source = make_source(log, parser=lambda: Parser(ParserSettings()), is_cri=is_cri)
    watch = make_watch(source, tmp_path / "state", losses=losses)
    log.write_bytes(start + b'{"n": 1}\n' + (start + b"\n") * number)
    watch.refresh()
    for now in (1_000.0, 1_003.0):
        for item in watch.files[0].read(now):
            watch.accept(watch.files[0], item.end)
    assert watch.files[0].unsent > 0
    while watch.files[0].position < log.stat().st_size:
        watch.files[0].read(1_003.0)
    watch.refresh()

    assert watch.files[0].unsent == 0
    log.write_bytes(start + b'{"n": 2}\n')
    watch.refresh()
    assert losses.found == [("a", "truncated", 0)]


def _watch_of_rewritten_file(tmp_path: Path, *numbers: int) -> FileWatch:
    """A watch that has read a file, which was truncated since and grew by *numbers*."""
    log = tmp_path / "mm2.log"
    watch = make_watch(make_source(log), tmp_path / "state")
    _append(log, 1, 2)
    watch.refresh()
    read_all(watch)
    log.write_text("")
    _append(log, *numbers)
    return watch


def test_watch_truncated_file_that_grew_again_starts_again(tmp_path: Path) -> None:
    watch = _watch_of_rewritten_file(tmp_path, 5, 6, 7)

    watch.refresh()

    assert _numbers(read_all(watch)) == [5, 6, 7]


def test_watch_truncated_file_is_not_read_at_the_old_offset(tmp_path: Path) -> None:
    watch = _watch_of_rewritten_file(tmp_path, 1_005, 1_006, 1_007)

    assert read_all(watch) == []
    watch.refresh()
    assert _numbers(read_all(watch)) == [1_005, 1_006, 1_007]


def test_watch_event_of_several_lines_is_complete_after_two_seconds(tmp_path: Path) -> None:
    log = tmp_path / "mm2.log"
    log.write_text("[1] a\n  at b\n[2] c\n")
    watch = make_watch(make_source(log, parser=BracketParser), tmp_path / "state")
    watch.refresh()

    assert [each["message"] for each in read_all(watch)] == ["[1] a\n  at b"]
    assert read_all(watch, now=1_001.9) == []
    assert [each["message"] for each in read_all(watch, now=1_002.0)] == ["[2] c"]


def _read_while_compressed(watch: FileWatch, log: Path, clock: StoppedClock) -> list[int]:
    """The numbers read of *log*, which is replaced by its archive before it is read."""
    _append(log, 1, 2)
    watch.refresh()
    log.with_name("mm2.log.1.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    found = []
    for _ in range(6):
        watch.refresh()
        found += _numbers(read_all(watch, now=clock.now))
        clock.now += 6
    return found


def test_watch_compressed_copy_of_an_open_file_is_not_read_twice(tmp_path: Path) -> None:
    log, clock = tmp_path / "mm2.log", StoppedClock()
    watch = make_watch(make_source(tmp_path / "mm2.log*"), tmp_path / "state", clock=clock)

    assert _read_while_compressed(watch, log, clock) == [1, 2]


def test_watch_deleted_file_over_the_limit_continues_in_its_archive(tmp_path: Path) -> None:
    log, clock, losses = tmp_path / "mm2.log", StoppedClock(), RecordedLosses()
    source = make_source(tmp_path / "mm2.log*")
    watch = make_watch(source, tmp_path / "state", losses=losses, clock=clock, max_deleted_bytes=10)

    assert _read_while_compressed(watch, log, clock) == [1, 2]
    assert losses.found == []


def test_watch_folder_and_cut_archive_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.log").mkdir()
    (tmp_path / "b.log.gz").write_bytes(gzip.compress(b'{"n": 1}\n' * 900)[:20])
    watch = make_watch(make_source(tmp_path / "*.log*"), tmp_path / "state")

    watch.refresh()

    assert watch.files == ()
    assert watch.unreadable == 1


_PACKED = gzip.compress("".join(f'{{"n": {n}, "m": {n * 7919}}}\n' for n in range(9_000)).encode())


@pytest.mark.parametrize(
    "packed",
    [_PACKED[: len(_PACKED) // 2], _PACKED + _PACKED[:10] + b"\xff" * 100],
    ids=["cut", "followed by other bytes"],
)
def test_watch_damaged_archive_is_reported_and_others_are_read(
    tmp_path: Path, packed: bytes
) -> None:
    (tmp_path / "a.log.gz").write_bytes(packed)
    _append(tmp_path / "b.log", 1)
    watch = make_watch(make_source(tmp_path / "*.log*"), tmp_path / "state")
    watch.refresh()

    with pytest.raises((OSError, EOFError)) as error:
        read_all(watch)
    watch.reopen(watch.files[0], error.value)

    assert watch.unreadable == 1
    assert _numbers(read_all(watch)) == [1]


def test_watch_file_that_fails_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "mm2.log"
    watch = make_watch(make_source(log), tmp_path / "state")
    _append(log, 1)
    watch.refresh()
    assert _numbers(read_all(watch)) == [1]
    with monkeypatch.context() as patch:
        patch.setattr(PlainContent, "size", _stale)
        watch.refresh()
        assert (watch.files, watch.unreadable) == ((), 1)
    _append(log, 2)
    watch.refresh()

    assert _numbers(read_all(watch)) == [2]


def _stale(_: PlainContent) -> int:
    raise OSError(errno.ESTALE, "Stale file handle")


def test_watch_truncation_before_a_kill_keeps_the_uids(tmp_path: Path) -> None:
    log, state = tmp_path / "mm2.log", tmp_path / "state"
    watch = make_watch(make_source(log), state)
    _append(log, 1, 2, 3)
    watch.refresh()
    read_all(watch)
    log.write_text("")
    _append(log, 7)
    watch.refresh()
    sent = read_all(watch, accept=False)
    watch.close()

    again = make_watch(make_source(log), state)
    again.refresh()

    assert [event["event_uid"] for event in read_all(again)] == [sent[0]["event_uid"]]
    assert _numbers(sent) == [7]


def test_watch_file_that_sources_of_two_indexes_match_is_read_for_the_first(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    first = make_source(tmp_path / "mm2*.log", index="a")
    second = make_source(tmp_path / "*audit*.log", index="b")
    _append(tmp_path / "mm2-audit.log", 1)
    _append(tmp_path / "audit.log", 2)
    watches = [make_watch(each, state, sources=[first, second]) for each in (first, second)]
    for watch in watches:
        watch.refresh()

    assert [_numbers(read_all(watch)) for watch in watches] == [[1], [2]]


def test_watch_file_renamed_to_the_pattern_of_another_index_is_read_once(tmp_path: Path) -> None:
    first = make_source(tmp_path / "mm2*.log", index="a")
    second = make_source(tmp_path / "audit.log", index="b")
    checkpoints = Checkpoints(tmp_path)
    watches = [
        make_watch(each, tmp_path, sources=[first, second], checkpoints=checkpoints)
        for each in (first, second)
    ]
    _append(tmp_path / "audit.log", 1)
    watches[1].refresh()
    (tmp_path / "audit.log").rename(tmp_path / "mm2-audit.log")
    for watch in watches:
        watch.refresh()

    assert [_numbers(read_all(watch)) for watch in watches] == [[], [1]]
