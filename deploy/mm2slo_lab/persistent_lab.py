"""The lab of `mm2slo lab`, which outlives the command that started it; one per user."""

from __future__ import annotations

import fcntl
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mm2slo_lab.lab import Lab
from mm2slo_lab.lab_errors import LabRunningError, NoLabError
from mm2slo_lab.lab_state import LabState, save, state_directory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mm2slo_lab.kafka_jars import Progress
    from mm2slo_lab.lab_topology import LabTopology


def up(topology: LabTopology, progress: Progress | None = None) -> Lab:
    """Start a lab that outlives this program, and write its mm2slo.yaml.

    Removes the remains of a dead lab. Raises LabRunningError when one is running.
    """
    with _exclusive():
        file = _state_file()
        if file.exists():
            running = [name for name, process in _attach().processes.items() if process.running]
            if running:
                raise LabRunningError(
                    f"a lab is already running ({', '.join(running)}): show it with"
                    " `mm2slo lab status`, stop it with `mm2slo lab down`"
                )
            _delete_state()
        try:
            lab = Lab.start(
                topology,
                root=state_directory() / "data",
                outlives_parent=True,
                progress=progress,
                on_change=lambda state: save(state, file),
            )
        except BaseException:
            file.unlink(missing_ok=True)
            raise
        config_file(lab).write_text(lab.config_yaml(), encoding="utf-8")
        save(lab.state, file)
        return lab


def config_file(lab: Lab) -> Path:
    """Return the path of the lab's mm2slo.yaml."""
    return lab.runtime.root / "mm2slo.yaml"


def attach() -> Lab:
    """Return the running lab. Raises NoLabError."""
    return _attach()


@contextmanager
def open_for_update() -> Iterator[Lab]:
    """Open the running lab to start and stop processes; saves its state afterwards."""
    with _exclusive():
        lab = _attach()
        try:
            yield lab
        finally:
            save(lab.state, _state_file())


def down() -> tuple[str, ...]:
    """Stop the lab and delete its data; returns the names of processes that were running.

    Raises NoLabError.
    """
    with _exclusive():
        lab = _attach()
        ran = tuple(name for name, process in lab.processes.items() if process.running)
        lab.close()
        _delete_state()
        return ran


def _attach() -> Lab:
    try:
        text = _state_file().read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NoLabError("no lab is running: start one with `mm2slo lab up`") from None
    return Lab.attach(LabState.parse(text))


def _delete_state() -> None:
    shutil.rmtree(state_directory() / "data", ignore_errors=True)
    _state_file().unlink(missing_ok=True)


def _state_file() -> Path:
    return state_directory() / "state.json"


@contextmanager
def _exclusive() -> Iterator[None]:
    directory = state_directory()
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabRunningError(
                "another `mm2slo lab` command is running: wait for it to finish"
            ) from None
        yield
