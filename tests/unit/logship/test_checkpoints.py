from pathlib import Path

import pytest
from log_shipping import StoppedClock

from mm2slo_core.user_errors import UserError
from mm2slo_logship.ship_state import Checkpoints, FileCheckpoint


def _checkpoint(offset: int) -> FileCheckpoint:
    return FileCheckpoint(
        file_id="f", path="/log", pattern="/*", device=1, inode=2, head_length=3, head_hash="h",
        offset=offset,
    )  # fmt: skip


def test_checkpoints_saved_are_read_again(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.put(_checkpoint(5))
    checkpoints.save()

    assert list(Checkpoints(tmp_path)) == [_checkpoint(5)]


def test_checkpoints_emptied_by_power_loss_are_at_most_a_second_old(tmp_path: Path) -> None:
    clock = StoppedClock()
    checkpoints = Checkpoints(tmp_path, clock)
    for offset in (1, 2):
        clock.now += 0.6
        checkpoints.put(_checkpoint(offset))
        checkpoints.save()
    (tmp_path / "checkpoints.json").write_bytes(b"")

    assert [each.offset for each in Checkpoints(tmp_path)] == [1]


def test_checkpoints_on_a_full_disk_raise_and_keep_the_previous_ones(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.put(_checkpoint(5))
    checkpoints.save()
    (tmp_path / "checkpoints.tmp").symlink_to("/dev/full")
    checkpoints.put(_checkpoint(6))

    with pytest.raises(OSError, match="No space left"):
        checkpoints.save()

    assert list(Checkpoints(tmp_path)) == [_checkpoint(5)]


def test_checkpoints_that_are_damaged_say_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "checkpoints.json").write_text("{")

    with pytest.raises(UserError, match="remove it to ship all files from their start"):
        Checkpoints(tmp_path)
