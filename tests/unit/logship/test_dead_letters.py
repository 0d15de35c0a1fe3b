from pathlib import Path

import pytest

from mm2slo_core.user_errors import UserError
from mm2slo_logship.ship_state import DeadLetters


def test_dead_letters_over_the_limit_delete_the_oldest(tmp_path: Path) -> None:
    letters = DeadLetters(tmp_path, 8_000)

    dropped = sum(letters.add(b"x" * 400, f"reason {number}") for number in range(100))

    kept = [each.reason for each in letters]
    assert kept == [f"reason {number}" for number in range(100 - len(kept), 100)]
    assert len(kept) == 100 - dropped
    assert 6_000 < sum(path.stat().st_size for path in tmp_path.glob("*.jsonl")) <= 8_000


def test_dead_letter_line_that_was_cut_is_replaced(tmp_path: Path) -> None:
    letters = DeadLetters(tmp_path, 8_000)
    letters.add(b"a", "first")
    (path,) = tmp_path.glob("*.jsonl")
    with path.open("ab") as segment:
        segment.write(b'{"at": "2026')

    assert [each.reason for each in letters] == ["first"]
    letters.add(b"b", "second")

    assert [each.reason for each in letters] == ["first", "second"]


def test_dead_letters_replayed_are_deleted_and_others_stay_as_they_are(tmp_path: Path) -> None:
    letters = DeadLetters(tmp_path, 8_000)
    for name in (b"a", b"b", b"c"):
        letters.add(name, "first")
    before = list(letters)

    letters.replay(lambda envelope: envelope == b"b")

    assert list(letters) == [before[0], before[2]]
    letters.replay(lambda _: True)
    assert list(letters) == []


def test_dead_letters_replay_that_is_stopped_keeps_all_that_was_not_accepted(
    tmp_path: Path,
) -> None:
    letters = DeadLetters(tmp_path, 8_000)
    for number in range(100):
        letters.add(b"%03d" % number + b"x" * 200, "first")
    before = list(letters)

    def send(envelope: bytes) -> bool:
        if envelope == before[10].envelope:
            raise UserError("stopped")
        return True

    with pytest.raises(UserError, match="stopped"):
        letters.replay(send)

    assert list(letters) == before[10:]


def test_dead_letters_added_during_a_replay_delete_the_oldest_at_most(tmp_path: Path) -> None:
    letters = DeadLetters(tmp_path, 8_000)
    for _ in range(100):
        letters.add(b"x" * 400, "first")

    def send(_: bytes) -> bool:
        letters.add(b"y" * 400, "second")
        return True

    letters.replay(send)

    kept = [each.reason for each in letters]
    assert kept
    assert set(kept) == {"second"}


def test_dead_letter_that_is_damaged_is_kept_and_others_are_read(tmp_path: Path) -> None:
    letters = DeadLetters(tmp_path, 8_000)
    letters.add(b"a", "first")
    (path,) = tmp_path.glob("*.jsonl")
    path.write_bytes(b'{"at": \n[]\n' + path.read_bytes())

    assert [each.reason for each in letters] == ["first"]
    letters.replay(lambda _: True)

    assert path.read_bytes() == b'{"at": \n[]\n'


def test_dead_letters_second_replay_is_refused(tmp_path: Path) -> None:
    letters = DeadLetters(tmp_path, 8_000)
    letters.add(b"a", "first")

    def send(_: bytes) -> bool:
        DeadLetters(tmp_path, 8_000).replay(lambda _: True)
        return True

    with pytest.raises(UserError, match="another replay of dead letters is running"):
        letters.replay(send)
    assert len(list(letters)) == 1
