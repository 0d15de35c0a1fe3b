"""The one lab per user that goes on after the command that started it."""

from __future__ import annotations

import fcntl
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mm2slo_lab.errors import LabRunningError, NoLabError
from mm2slo_lab.lab import Lab
from mm2slo_lab.state import LabState, save, state_directory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mm2slo_lab.jars import Progress
    from mm2slo_lab.topology import LabTopology


def up(topology: LabTopology, progress: Progress | None = None) -> Lab:
    """Start a lab that outlives this program, and write its mm2slo.yaml.

    Raises LabRunningError when one is up already; what a dead one left is removed.
    """
    with _alone():
        file = _state_file()
        if file.exists():
            running = [name for name, process in _attached().processes.items() if process.running]
            if running:
                raise LabRunningError(
                    f"a lab is up ({', '.join(running)}): see `mm2slo lab status`,"
                    " end it with `mm2slo lab down`"
                )
            _forget()
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
    """The mm2slo.yaml of a persisted lab."""
    return lab.runtime.root / "mm2slo.yaml"


def current() -> Lab:
    """The lab that is up, to look at. Raises NoLabError when there is none."""
    return _attached()


@contextmanager
def changed() -> Iterator[Lab]:
    """The lab that is up, to start and stop its processes: the state is written afterwards."""
    with _alone():
        lab = _attached()
        try:
            yield lab
        finally:
            save(lab.state, _state_file())


def down() -> tuple[str, ...]:
    """End every process of the lab and delete its data; the names of those that ran.

    Raises NoLabError when there is none.
    """
    with _alone():
        lab = _attached()
        ran = tuple(name for name, process in lab.processes.items() if process.running)
        lab.close()
        _forget()
        return ran


def _attached() -> Lab:
    try:
        text = _state_file().read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NoLabError("no lab is up: start one with `mm2slo lab up`") from None
    return Lab.attach(LabState.parse(text))


def _forget() -> None:
    shutil.rmtree(state_directory() / "data", ignore_errors=True)
    _state_file().unlink(missing_ok=True)


def _state_file() -> Path:
    return state_directory() / "state.json"


@contextmanager
def _alone() -> Iterator[None]:
    directory = state_directory()
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabRunningError("another `mm2slo lab` command is at work: wait for it") from None
        yield
