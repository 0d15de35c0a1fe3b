"""Java, Kafka's jars, folder and JVM flags of a lab.

The jars are downloaded once per user with the Apache Ivy in PySpark, then cached. A folder
`kafka-<version>` in the cache is always complete: it is filled under another name, then renamed.
"""

import fcntl
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self
from xml.sax.saxutils import quoteattr

from mm2slo_core.local_environment import cache_folder, java_major
from mm2slo_core.user_errors import MissingExtraError
from mm2slo_lab.lab_topology import (
    Artifact,
    LabError,
    artifacts,
    mirror_version,
    release_line,
)
from mm2slo_lab.managed_process import ProcessSpec

Progress = Callable[[str], None]


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
    def prepare(cls, version: str, root: Path, progress: Progress | None = None) -> Self:
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
    def mirror(self) -> Self:
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


_CLIENTS = re.compile(r"^kafka-clients-(?P<version>\d+(?:\.\d+)+)\.jar$")
_DOWNLOADING = re.compile(r"^downloading .*/(?P<file>[^/]+\.(?:jar|pom)) ")
_REASONS = ("UNRESOLVED", "Exception", "ERROR", "not found", "unknown host", "refused")


def jar_paths(version: str, progress: Progress | None = None) -> tuple[Path, ...]:
    """Return the jars of a Kafka *version* (`4.4.x` or exact), downloading them if necessary.

    A download takes a minute or two; *progress* gets a line per step.
    Raises LabError without a usable Java, or when the download fails.
    """
    report_step = progress or (lambda _line: None)
    line = release_line(version)
    folder = _cached(version)
    if folder is None:
        java = find_java(line.java)
        with _exclusive(cache_folder(), report_step):
            # Another process may have filled the cache in the meantime.
            folder = _cached(version) or _download(java, version, report_step)
    return tuple(sorted(folder.glob("*.jar")))


def classpath(version: str, progress: Progress | None = None) -> str:
    """Return the jars of *version* as a class path."""
    return os.pathsep.join(str(path) for path in jar_paths(version, progress))


def resolved_version(version: str, progress: Progress | None = None) -> str:
    """Resolve *version* to the exact version on this machine, for example `4.1.2`."""
    return _version_of(jar_paths(version, progress))


def _cached(version: str) -> Path | None:
    exact = version.removesuffix(".x")
    pattern = f"kafka-{exact}.*" if exact != version else f"kafka-{version}"
    found = [path for path in cache_folder().glob(pattern) if path.is_dir()]
    return max(found, key=_patch, default=None)


def _patch(folder: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", folder.name))


def _version_of(jars: tuple[Path, ...]) -> str:
    for path in jars:
        match = _CLIENTS.match(path.name)
        if match is not None:
            return match["version"]
    raise LabError(f"kafka-clients is missing in {len(jars)} downloaded jars: try again")


@contextmanager
def _exclusive(directory: Path, report_step: Progress) -> Iterator[None]:
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "download.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report_step("waiting for another process to download Kafka")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _download(java: str, version: str, report_step: Progress) -> Path:
    cache = cache_folder()
    # Kept after a failure, so that the next attempt can continue.
    ivy_cache = cache / "ivy"
    with tempfile.TemporaryDirectory(prefix="kafka-incomplete-", dir=cache) as staging:
        command, target = _ivy_command(java, artifacts(version), Path(staging), ivy_cache)
        report_step(f"downloading Kafka {version} and MirrorMaker 2 (60 MB, once per user)")
        _run_ivy(command, f"Kafka {version}", report_step)
        folder = cache / f"kafka-{_version_of(tuple(target.glob('*.jar')))}"
        if not folder.exists():
            target.rename(folder)
    shutil.rmtree(ivy_cache, ignore_errors=True)
    report_step(f"Kafka's jars are in {folder}")
    return folder


def fetch_jars(java: str, modules: Iterable[Artifact], staging: Path) -> Path:
    """Download *modules* with their dependencies to a folder in *staging*, without a cache.

    Raises LabError.
    """
    modules = tuple(modules)
    command, target = _ivy_command(java, modules, staging, staging / "ivy")
    _run_ivy(command, ", ".join(each.name for each in modules), lambda _line: None)
    return target


def _ivy_command(
    java: str, modules: Iterable[Artifact], staging: Path, cache: Path
) -> tuple[tuple[str, ...], Path]:
    """The command that downloads *modules*, and the folder that it fills."""
    module, target = staging / "ivy.xml", staging / "jars"
    module.write_text(render_ivy_module(modules), encoding="utf-8")
    settings = os.environ.get("MM2SLO_IVY_SETTINGS")
    command = render_ivy_command(
        java=java,
        ivy_jar=_ivy_jar(),
        module=module,
        cache=cache,
        target=target,
        settings=Path(settings) if settings else None,
    )
    return command, target


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        # Kafka is downloaded with the Ivy of PySpark.
        raise MissingExtraError(module="pyspark", extra="lab")
    found = sorted(Path(spec.origin).parent.glob("jars/ivy-*.jar"))
    if not found:
        raise LabError(
            f"jars/ivy-*.jar not found next to {spec.origin}: "
            "reinstall pyspark (pip install '.[lab]' in a checkout of mm2slo)"
        )
    return found[-1]


def _run_ivy(command: tuple[str, ...], what: str, report_step: Progress) -> None:
    reasons: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        if process.stdout is None:  # pragma: no cover - stdout=PIPE always gives one
            raise LabError("Ivy's output could not be read")
        for count, line in enumerate(process.stdout):
            match = _DOWNLOADING.match(line)
            if match is not None:
                report_step(f"downloading {match['file']}")
            elif count and any(reason in line for reason in _REASONS):
                reasons.append(line.strip())
    if process.returncode != 0:
        last = "; ".join(reasons[-3:]) or "no reason given"
        raise LabError(
            f"Ivy could not download {what} (exit status {process.returncode}): {last}."
            " Check the network and try again; for a mirror, set MM2SLO_IVY_SETTINGS to"
            " an Ivy settings file"
        )


RETRIEVE_PATTERN = "[artifact]-[revision](-[classifier]).[ext]"


def render_ivy_module(artifacts: Iterable[Artifact]) -> str:
    """Render the ivy.xml for *artifacts* and their runtime dependencies.

    `default->default` maps Maven's runtime scope. Repositories come from Ivy's settings, so that
    mirrors are configured there.
    """
    dependencies = "\n".join(
        f"    <dependency org={quoteattr(artifact.organisation)}"
        f" name={quoteattr(artifact.name)} rev={quoteattr(artifact.revision)}/>"
        for artifact in artifacts
    )
    return (
        '<ivy-module version="2.0">\n'
        '  <info organisation="mm2slo" module="lab"/>\n'
        '  <configurations><conf name="default"/></configurations>\n'
        '  <dependencies defaultconf="default->default">\n'
        f"{dependencies}\n"
        "  </dependencies>\n"
        "</ivy-module>\n"
    )


def render_ivy_command(
    *, java: str, ivy_jar: Path, module: Path, cache: Path, target: Path, settings: Path | None
) -> tuple[str, ...]:
    """Return the command that downloads the jars of *module* to *target*."""
    return (
        java,
        "-Xmx256m",
        "-XX:TieredStopAtLevel=1",
        "-jar",
        str(ivy_jar),
        *(() if settings is None else ("-settings", str(settings))),
        "-ivy",
        str(module),
        "-cache",
        str(cache),
        "-confs",
        "default",
        "-types",
        "jar",
        "bundle",
        "-retrieve",
        f"{target}/{RETRIEVE_PATTERN}",
    )


_INSTALL = "install Java 17 or newer (Debian and Ubuntu: apt-get install openjdk-17-jre-headless)"


def find_java(minimum: int) -> str:
    """Return the path of `java` in JAVA_HOME or on PATH.

    Raises LabError when it is missing or older than *minimum*.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not Path(java).is_file():
        where = f"JAVA_HOME ({home})" if home else "PATH"
        raise LabError(f"java not found in {where}: {_INSTALL}")
    result = subprocess.run(
        [java, "-version"], capture_output=True, text=True, timeout=30, check=False
    )
    major = java_major(result.stderr)
    if major is None or major < minimum:
        found = "an unknown version" if major is None else f"version {major}"
        raise LabError(f"{java} is {found}, this Kafka requires {minimum}: {_INSTALL}")
    return java
