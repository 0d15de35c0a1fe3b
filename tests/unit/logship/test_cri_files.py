import gzip
import json
from pathlib import Path

from log_shipping import BracketParser, StoppedClock, make_source, make_watch, read_all

_AT = "2026-11-22T17:10:39.123456789Z"


def _cri(*lines: str) -> str:
    return "".join(f"{_AT} {line}\n" for line in lines)


def test_cri_partial_lines_are_joined_per_stream(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_text(_cri('stdout P {"n":', 'stderr F {"n": 7}', "stdout F  1}", 'stdout F {"n": 2}'))
    watch = make_watch(make_source(log, is_cri=True), tmp_path / "state")
    watch.refresh()

    assert [event["n"] for event in read_all(watch)] == [1, 7, 2]


def test_cri_event_without_time_has_that_of_the_runtime(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_text(_cri("stdout F plain text"))
    watch = make_watch(make_source(log, is_cri=True), tmp_path / "state")
    watch.refresh()

    (item,) = watch.files[0].read(0.0)

    assert json.loads(item.body)["time"] == 1795367439.123456


def test_cri_checkpoint_stays_at_the_first_partial_line(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    first = _cri('stdout F {"n": 1}')
    log.write_text(first + _cri('stdout P {"n":', 'stderr F {"n": 7}'))
    watch = make_watch(make_source(log, is_cri=True), tmp_path / "state")
    watch.refresh()

    assert [event["n"] for event in read_all(watch)] == [1, 7]
    assert watch.files[0].checkpoint.offset == len(first)
    with log.open("a") as file:
        file.write(_cri("stdout F  2}"))
    assert [event["n"] for event in read_all(watch)] == [2]
    assert watch.files[0].checkpoint.offset == log.stat().st_size


def test_cri_checkpoint_never_lies_within_a_joined_line(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_text(
        _cri('stdout P {"n":', 'stderr P {"n":', "stdout F  1}")
        + _cri("stderr F  2}", 'stdout F {"n": 3}')
    )
    watch = make_watch(make_source(log, is_cri=True), tmp_path / "state")
    watch.refresh()

    items = watch.files[0].read(0.0)

    assert [json.loads(item.body)["event"]["n"] for item in items] == [1, 2, 3]
    # Reading again from between 1 and 2 would cut both.
    end = log.stat().st_size
    assert [item.end for item in items] == [0, end - len(_cri('stdout F {"n": 3}')), end]


def test_cri_stream_that_stops_is_completed_while_the_other_continues(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_text(_cri("stderr F [1] error", "stderr F   at a", "stdout F [2] x"))
    watch = make_watch(make_source(log, is_cri=True, parser=BracketParser), tmp_path / "state")
    watch.refresh()
    assert read_all(watch, now=10.0) == []
    with log.open("a") as file:
        file.write(_cri("stdout F [3] y"))

    assert [each["message"] for each in read_all(watch, now=13.0)] == ["[1] error\n  at a", "[2] x"]


def test_cri_rotated_files_of_a_symlinked_container_are_read_once(tmp_path: Path) -> None:
    pods, clock, state = tmp_path / "pods", StoppedClock(), tmp_path / "state"
    pods.mkdir()
    log = pods / "0.log"
    log.write_text(_cri('stdout F {"n": 3}'))
    (pods / "0.log.20261122-100000.gz").write_bytes(
        gzip.compress(_cri('stdout F {"n": 1}').encode())
    )
    (pods / "0.log.20261122-110000").write_text(_cri('stdout F {"n": 2}'))
    (pods / "0.log.20261122-110000.tmp").write_text(_cri('stdout F {"n": 9}'))
    (tmp_path / "mm2.log").symlink_to(log)
    source = make_source(tmp_path / "mm2.log", is_cri=True)
    found = []
    for _ in range(2):
        watch = make_watch(source, state, clock=clock)
        for _ in range(4):
            watch.refresh()
            found += [event["n"] for event in read_all(watch, now=clock.now)]
            clock.now += 6
        watch.close()

    assert sorted(found) == [1, 2, 3]


def test_cri_file_compressed_after_it_was_read_is_not_read_again(tmp_path: Path) -> None:
    log, clock = tmp_path / "0.log", StoppedClock()
    watch = make_watch(make_source(log, is_cri=True), tmp_path / "state", clock=clock)
    log.write_text(_cri('stdout F {"n": 1}'))
    watch.refresh()
    found = read_all(watch)
    rotated = tmp_path / "0.log.20261122-110000"
    log.rename(rotated)
    for _ in range(3):
        watch.refresh()
        found += read_all(watch, now=clock.now)
        clock.now += 6
    (tmp_path / f"{rotated.name}.gz").write_bytes(gzip.compress(rotated.read_bytes()))
    rotated.unlink()
    watch.refresh()

    assert [event["n"] for event in found + read_all(watch, now=clock.now)] == [1]
