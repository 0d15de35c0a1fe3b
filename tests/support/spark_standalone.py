"""Runs a local Spark standalone cluster with the scripts of the pip package."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mm2slo_lab.managed_process import (
    HOST,
    ManagedProcess,
    ProcessSpec,
    accepts,
    free_ports,
    wait_for,
)

_MASTER: Final = "org.apache.spark.deploy.master.Master"
_WORKER: Final = "org.apache.spark.deploy.worker.Worker"


@dataclass(frozen=True, slots=True)
class SparkCluster:
    """A running cluster."""

    master: str
    """URL for `--master`."""
    root: Path

    def executor_logs(self) -> dict[str, list[str]]:
        """Standard error of executors by worker."""
        return {
            worker.name: [each.read_text() for each in sorted(worker.glob("app-*/*/stderr"))]
            for worker in sorted(self.root.glob("worker-*"))
            if worker.is_dir()
        }


@contextmanager
def spark_standalone(
    workers: int, *, cores: int = 1, memory: str = "1g", pinned: bool = False
) -> Iterator[SparkCluster]:
    """Run a master and *workers* with *cores* each until the block ends.

    Spark's cores only limit concurrent tasks; JIT and GC threads use all cores of the machine.
    With *pinned*, each worker is restricted to one core.
    """
    root = Path(tempfile.mkdtemp(prefix="mm2slo-standalone-"))
    port, *others = free_ports(2 + 2 * workers)
    url = f"spark://{HOST}:{port}"
    with ExitStack() as running:
        running.callback(shutil.rmtree, root, ignore_errors=True)
        arguments = ("--host", HOST, "--port", str(port), "--webui-port", str(others[0]))
        _start(running, root, "master", (_MASTER, *arguments))
        wait_for(lambda: accepts(port), f"the master on port {port}")
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
        yield SparkCluster(url, root)


def _start(
    running: ExitStack, root: Path, name: str, arguments: tuple[str, ...], core: int | None = None
) -> None:
    # spark-class execs java, so killing this process ends the daemon.
    command = (str(_spark_class()), *arguments)
    if core is not None:
        command = ("taskset", "-c", str(core), *command)
    spec = ProcessSpec(name, command, root / f"{name}.log")
    process = ManagedProcess(spec)
    process.start()
    running.callback(process.kill)


def _wait_registered(log: Path) -> None:
    message = "Successfully registered with master"
    wait_for(lambda: message in log.read_text(), f"{log.stem} to register")


def _spark_class() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent / "bin" / "spark-class"
