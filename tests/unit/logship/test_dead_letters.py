from pathlib import Path

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


def test_dead_letters_taken_before_a_kill_are_taken_again(tmp_path: Path) -> None:
    letters = DeadLetters(tmp_path, 8_000)
    letters.add(b"a", "first")
    killed = letters.take()
    assert [each.envelope for each in next(killed)] == [b"a"]
    del killed
    letters.add(b"b", "second")

    assert [[each.reason for each in segment] for segment in letters.take()] == [
        ["first"], ["second"]
    ]  # fmt: skip
    assert list(letters.take()) == []
