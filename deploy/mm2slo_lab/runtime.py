"""What every process of a lab shares: Java, jars, directories, heap flags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_lab.jars import classpath
from mm2slo_lab.java import find_java
from mm2slo_lab.process import ProcessSpec
from mm2slo_lab.versions import release_line

if TYPE_CHECKING:
    from pathlib import Path

    from mm2slo_lab.jars import Progress

# Measured on two cores: half the start-up time of the defaults, 370 MB a broker.
_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.awt.headless=true")


@dataclass(frozen=True, slots=True)
class Runtime:
    """Java, the class path and the lab's directory."""

    java: str
    class_path: str
    root: Path
    log_option: str

    @classmethod
    def prepare(cls, version: str, root: Path, progress: Progress | None = None) -> Runtime:
        """Find Java and the jars (downloading them at first), write the logging configuration."""
        line = release_line(version)
        java = find_java(line.java)
        class_path = classpath(version, progress)
        root.mkdir(parents=True, exist_ok=True)
        log_config = root / "logging.properties"
        log_config.write_text(line.log_config, encoding="ascii")
        return cls(java, class_path, root, f"-D{line.log_option}=file:{log_config}")

    def spec(self, name: str, heap: int, main: str, *arguments: str) -> ProcessSpec:
        """A Java program with a heap of *heap* MiB that logs to `logs/<name>.log`."""
        return ProcessSpec(name, self.command(heap, main, *arguments), self.log_file(name))

    def command(self, heap: int, main: str, *arguments: str) -> tuple[str, ...]:
        """The command line of a Java program."""
        memory = f"-Xmx{heap}m"
        return (
            self.java, memory, *_FLAGS, self.log_option, "-cp", self.class_path, main, *arguments
        )  # fmt: skip

    def log_file(self, name: str) -> Path:
        """Where *name* logs."""
        return self.root / "logs" / f"{name}.log"
