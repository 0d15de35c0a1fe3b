"""A Spark standalone cluster of this machine, from the pip package's own scripts."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mm2slo_lab.ports import HOST, accepts, free_ports
from mm2slo_lab.process import ManagedProcess, ProcessSpec
from mm2slo_lab.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

_MASTER: Final = "org.apache.spark.deploy.master.Master"
_WORKER: Final = "org.apache.spark.deploy.worker.Worker"
_TIMEOUT: Final = 60.0


@dataclass(frozen=True, slots=True)
class Standalone:
    """A running cluster."""

    master: str
    """Its URL, for `--master`."""
    root: Path

    def executor_logs(self) -> dict[str, list[str]]:
        """What each worker's executors wrote on their standard error, by worker."""
        return {
            worker.name: [each.read_text() for each in sorted(worker.glob("app-*/*/stderr"))]
            for worker in sorted(self.root.glob("worker-*"))
            if worker.is_dir()
        }


@contextmanager
def standalone(
    workers: int, *, cores: int = 1, memory: str = "1g", pinned: bool = False
) -> Iterator[Standalone]:
    """A master and *workers* of *cores* each; all have ended when the context does.

    Spark's cores are tasks at a time: compilers and collectors of a worker use what the machine
    has. *pinned* gives each worker of one core one of the machine's, and nothing else.
    """
    root = Path(tempfile.mkdtemp(prefix="mm2slo-standalone-"))
    port, *others = free_ports(2 + 2 * workers)
    url = f"spark://{HOST}:{port}"
    with ExitStack() as running:
        running.callback(shutil.rmtree, root, ignore_errors=True)
        arguments = ("--host", HOST, "--port", str(port), "--webui-port", str(others[0]))
        _start(running, root, "master", (_MASTER, *arguments))
        wait_for(lambda: accepts(port), f"the master on port {port}", _TIMEOUT)
        for number in range(workers):
            folder = root / f"worker-{number}"
            folder.mkdir()
            own, page = others[1 + 2 * number : 3 + 2 * number]
            arguments = ("--host", HOST, "--port", str(own), "--webui-port", str(page))
            limits = ("--cores", str(cores), "--memory", memory, "--work-dir", str(folder))
            core = number % (os.cpu_count() or 1) if pinned else None
            _start(running, root, folder.name, (_WORKER, *arguments, *limits, url), core)
        for number in range(workers):
            _wait_registered(root / f"worker-{number}.log")
        yield Standalone(url, root)


def _start(
    running: ExitStack, root: Path, name: str, arguments: tuple[str, ...], core: int | None = None
) -> None:
    # spark-class ends by becoming java, so that ending this process ends the daemon.
    command = (str(_spark_class()), *arguments)
    if core is not None:
        command = ("taskset", "-c", str(core), *command)
    spec = ProcessSpec(name, command, root / f"{name}.log")
    process = ManagedProcess(spec)
    process.start()
    running.callback(process.kill)


def _wait_registered(log: Path) -> None:
    said = "Successfully registered with master"
    wait_for(lambda: said in log.read_text(), f"{log.stem} to register", _TIMEOUT)


def _spark_class() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent / "bin" / "spark-class"
