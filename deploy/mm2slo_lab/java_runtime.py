"""Java, jars, folder and JVM flags of a lab."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mm2slo_lab.java_lookup import find_java
from mm2slo_lab.kafka_jars import classpath
from mm2slo_lab.kafka_versions import mirror_version, release_line
from mm2slo_lab.managed_process import ProcessSpec

if TYPE_CHECKING:
    from pathlib import Path

    from mm2slo_lab.kafka_jars import Progress

# Measured on two cores: half the startup time of the defaults, 370 MB per broker. Classes are not
# verified, a tenth of a start: the jars are Kafka's, and checked when they are downloaded.
FLAGS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
    "-Djava.awt.headless=true",
)


@dataclass(frozen=True, slots=True)
class Runtime:
    """Java, class path and folder of a lab."""

    java: str
    class_path: str
    mirror_class_path: str
    root: Path
    log_option: str

    @classmethod
    def prepare(cls, version: str, root: Path, progress: Progress | None = None) -> Runtime:
        """Find Java and the jars (downloaded if necessary); write the logging configuration."""
        line = release_line(version)
        java = find_java(line.java)
        class_path = classpath(version, progress)
        mirror_class_path = classpath(mirror_version(version), progress)
        root.mkdir(parents=True, exist_ok=True)
        log_config = root / "logging.properties"
        log_config.write_text(line.log_config, encoding="ascii")
        option = f"-D{line.log_option}=file:{log_config}"
        return cls(java, class_path, mirror_class_path, root, option)

    @property
    def mirror(self) -> Runtime:
        """The runtime of MirrorMaker 2 and Connect, whose version may be older."""
        return replace(self, class_path=self.mirror_class_path)

    def spec(self, name: str, heap: int, main: str, *arguments: str) -> ProcessSpec:
        """Return the spec of a Java program with *heap* MiB that logs to `logs/<name>.log`."""
        return ProcessSpec(name, self.command(heap, main, *arguments), self.log_file(name))

    def command(self, heap: int, main: str, *arguments: str) -> tuple[str, ...]:
        """Return the command line of a Java program."""
        memory = f"-Xmx{heap}m"
        return (
            self.java, memory, *FLAGS, self.log_option, "-cp", self.class_path, main, *arguments
        )  # fmt: skip

    def log_file(self, name: str) -> Path:
        """Return the log file of *name*."""
        return self.root / "logs" / f"{name}.log"
