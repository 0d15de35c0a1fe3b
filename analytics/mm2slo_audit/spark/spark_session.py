"""Starts a Spark session, and stops its JVM at the end.

Around it: Java's version, an archive of Spark's classes, Ctrl-C, and the JVM's standard error.

Archive: dynamic application class-data sharing (JEP 350, Java 13 and newer): one JVM archives its
loaded classes at exit, later ones map them instead of loading and verifying 15,000 classes from
jars; a run takes a quarter less time. An archive is valid for one build of Java with one class
path; its name contains a hash of both.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import TYPE_CHECKING, Any, Final

from mm2slo_audit.spark.spark_errors import (
    describe_spark_error,
    explain_start_failure,
    spark_exceptions,
)
from mm2slo_audit.spark.spark_properties import (
    SESSION_PROPERTIES,
    SparkOptions,
    is_needed_at_launch,
    spark_properties,
)
from mm2slo_core.local_environment import cache_folder, java_major
from mm2slo_core.user_errors import MissingExtraError, UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_UNDER_SUBMIT: Final = "PYSPARK_GATEWAY_PORT"
_EXIT_SECONDS: Final = 20.0
_ARCHIVING_SECONDS: Final = 300.0


@contextmanager
def spark_session(
    options: SparkOptions, *, archive_to: Path | None = None
) -> Iterator[SparkSession]:
    """A session with *options*; leaving the context stops it and its JVM.

    Under spark-submit the master, memory and jars are those of spark-submit. With *archive_to* the
    JVM writes an archive of its loaded classes there at exit; otherwise it maps the archive of
    `mm2slo audit prepare`, if any. Raises UserError if Spark cannot be started, MissingExtraError
    without pyspark.
    """
    try:
        import pyspark
    except ImportError:
        raise MissingExtraError(module="pyspark", extra="audit") from None
    if _UNDER_SUBMIT in os.environ:
        with _submitted_session(options) as session:
            yield session
        return
    package = Path(pyspark.__file__).parent
    _require_own_spark(package)
    java = require_java()
    if archive_to is None:
        launched = _launched_session(
            options, map_archive_options(class_archive_path(java, package)), _EXIT_SECONDS
        )
    else:
        launched = _launched_session(options, write_archive_options(archive_to), _ARCHIVING_SECONDS)
    with launched as session:
        yield session


@contextmanager
def _submitted_session(options: SparkOptions) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(options.app_name)
    for name, value in {**SESSION_PROPERTIES, **options.conf}.items():
        builder = builder.config(name, value)
    try:
        with keep_interrupt_handler():
            session = builder.getOrCreate()
    except spark_exceptions() as error:
        raise explain_start_failure((), describe_spark_error(error), "of spark-submit") from None
    try:
        with silence_gateway_logs():
            yield session
    finally:
        session.stop()


@contextmanager
def _launched_session(
    options: SparkOptions, java_options: str, exit_seconds: float
) -> Iterator[SparkSession]:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        raise UserError("a Spark session is already running in this process: stop it first")
    wanted = spark_properties(options, java_options)
    relay = StderrRelay()
    started: list[Popen[bytes]] = []
    try:
        try:
            gateway = launch_gateway(  # type: ignore[no-untyped-call]  # PySpark's own
                _spark_conf(SparkConf, {n: v for n, v in wanted.items() if is_needed_at_launch(n)}),
                popen_kwargs={"stderr": relay.write_end},
            )
            started.append(gateway.proc)
        finally:
            relay.process_started()
        with keep_interrupt_handler():
            context = SparkContext(conf=_spark_conf(SparkConf, wanted), gateway=gateway)
        session = SparkSession(context)
    except spark_exceptions() as error:
        reason = describe_spark_error(error)
        for process in started:
            _stop_process(process)
        _forget_gateway(SparkContext)
        raise explain_start_failure(relay.last_lines(), reason, options.master) from None
    except BaseException:
        for process in started:
            _stop_process(process)
        _forget_gateway(SparkContext)
        raise
    relay.session_started()
    try:
        with silence_gateway_logs():
            yield session
    finally:
        with suppress(Exception):
            session.stop()
        # If the JVM has died, the first stop fails before it releases the context.
        with suppress(Exception):
            context.stop()
        with suppress(Exception):
            gateway.shutdown()
        for process in started:
            _stop_process(process, exit_seconds)
        _forget_gateway(SparkContext)


def _spark_conf(kind: Any, values: Mapping[str, str]) -> Any:
    conf = kind(loadDefaults=False)
    for name, value in values.items():
        conf.set(name, value)
    return conf


def _stop_process(process: Popen[bytes], exit_seconds: float = _EXIT_SECONDS) -> None:
    """Close standard input, which ends the JVM."""
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    try:
        process.wait(exit_seconds)
    except TimeoutExpired:
        process.kill()
        process.wait()


def _forget_gateway(context: Any) -> None:
    # PySpark keeps one JVM per process; the next session must start its own.
    context._gateway = None
    context._jvm = None


def _require_own_spark(package: Path) -> None:
    """SPARK_HOME overrides the Spark of the pyspark package and may have any version."""
    home = os.environ.get("SPARK_HOME")
    if home and Path(home).resolve() != package.resolve():
        raise UserError(
            f"SPARK_HOME is {home}; expected the Spark of the pyspark package in {package}: unset"
            " SPARK_HOME, or run the audit by that Spark's spark-submit"
        )


_PATTERN: Final = "spark-*.jsa"

# Spark's scripts prepend these to the class path.
_CLASS_PATH: Final = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")


def class_archive_path(java: JavaRuntime, package: Path) -> Path:
    """Path of the archive of *java* and the Spark in *package*, in `cache_folder`."""
    known = hashlib.sha256(java.version.encode())
    for name in _CLASS_PATH:
        known.update(f"{name}={os.environ.get(name, '')}\n".encode())
    for jar in sorted((package / "jars").glob("*.jar")):
        status = jar.stat()
        # Java checks both before it uses an archive.
        known.update(f"{jar} {status.st_size} {status.st_mtime_ns}\n".encode())
    return cache_folder() / _PATTERN.replace("*", known.hexdigest()[:16])


def map_archive_options(archive: Path) -> str:
    """JVM options to map *archive*; empty if it does not exist.

    Java ignores an unusable archive; the log option suppresses its message.
    """
    return f"-XX:SharedArchiveFile={archive} -Xlog:cds=off" if archive.is_file() else ""


def write_archive_options(archive: Path) -> str:
    """JVM options to write *archive* at exit."""
    return f"-XX:ArchiveClassesAtExit={archive} -Xlog:cds=off -Xlog:cds+dynamic=off"


def delete_other_archives(archive: Path) -> None:
    """Delete archives of other builds of Java and Spark beside *archive* (180 MB each)."""
    for other in archive.parent.glob(_PATTERN):
        if other != archive:
            other.unlink(missing_ok=True)


MINIMUM_JAVA: Final = 17
"""Required by Spark 4."""

_INSTALL: Final = (
    "install Java 17 or 21 (Debian and Ubuntu: apt-get install openjdk-17-jre-headless)"
    " or set JAVA_HOME to one"
)


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    path: str
    version: str
    """Output of `java -version`: release, build and vendor."""


def require_java() -> JavaRuntime:
    """The `java` that Spark's scripts run: from JAVA_HOME, else from the PATH.

    Raises UserError if it is missing or too old.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not Path(java).is_file():
        where = f"JAVA_HOME ({home})" if home else "the PATH"
        raise UserError(
            f"Spark needs Java {MINIMUM_JAVA} or newer; found none in {where}: {_INSTALL}"
        )
    version = _version_text(java)
    major = java_major(version)
    if major is None or major < MINIMUM_JAVA:
        found = "an unknown version" if major is None else f"version {major}"
        raise UserError(f"Spark needs Java {MINIMUM_JAVA} or newer; {java} is {found}: {_INSTALL}")
    return JavaRuntime(java, version)


def _version_text(java: str) -> str:
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stderr + answer.stdout


_ABOVE_CRITICAL: Final = logging.CRITICAL + 1


@contextmanager
def keep_interrupt_handler() -> Iterator[None]:
    """Restore the SIGINT handler after starting a session: PySpark replaces it permanently."""
    if threading.current_thread() is not threading.main_thread():
        yield  # PySpark sets it only in the main thread
        return
    former = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if former is None else former)


@contextmanager
def silence_gateway_logs() -> Iterator[None]:
    """Drop Py4J's log messages: they are stack traces of exceptions that it also raises."""
    root, own = logging.getLogger(), logging.getLogger("py4j")
    level = own.level
    # A filter of the root logger sees only records logged to it directly, not propagated ones.
    root.addFilter(_is_not_py4j)
    own.setLevel(_ABOVE_CRITICAL)
    try:
        yield
    finally:
        root.removeFilter(_is_not_py4j)
        own.setLevel(level)


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


logger = logging.getLogger("mm2slo.spark")
_LAST_LINES: Final = 400


class StderrRelay:
    """A pipe for a process, and a thread that reads it."""

    def __init__(self) -> None:
        reading, self.write_end = os.pipe()
        self._lines: deque[str] = deque(maxlen=_LAST_LINES)
        self._starting = True
        self._thread = threading.Thread(
            target=self._read, args=(reading,), name="spark-errors", daemon=True
        )
        self._thread.start()

    def process_started(self) -> None:
        """Close this process's copy of the write end."""
        os.close(self.write_end)

    def session_started(self) -> None:
        """Log lines from now on."""
        self._starting = False

    def last_lines(self, timeout: float = 5.0) -> tuple[str, ...]:
        """The last lines of the process, which has ended."""
        self._thread.join(timeout)
        return tuple(self._lines)

    def _read(self, reading: int) -> None:
        with os.fdopen(reading, encoding="utf-8", errors="replace") as stream:
            for line in stream:
                text = line.rstrip()
                self._lines.append(text)
                if not self._starting and text:
                    logger.warning("%s", text)
