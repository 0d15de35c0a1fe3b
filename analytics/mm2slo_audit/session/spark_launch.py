"""Starts a Spark session, and stops its JVM at the end."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import TYPE_CHECKING, Any, Final

from mm2slo_audit.session.class_archive import (
    class_archive_path,
    map_archive_options,
    write_archive_options,
)
from mm2slo_audit.session.interrupt_handler import keep_interrupt_handler, silence_gateway_logs
from mm2slo_audit.session.java_runtime import require_java
from mm2slo_audit.session.spark_errors import describe_spark_error, spark_exceptions
from mm2slo_audit.session.spark_properties import SESSION, is_needed_at_launch, spark_properties
from mm2slo_audit.session.start_errors import explain_start_failure
from mm2slo_audit.session.stderr_relay import StderrRelay
from mm2slo_core.user_errors import MissingExtraError, UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from mm2slo_audit.session.spark_options import SparkOptions

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
        with _submitted(options) as session:
            yield session
        return
    package = Path(pyspark.__file__).parent
    _require_own_spark(package)
    java = require_java()
    if archive_to is None:
        launched = _launched(
            options, map_archive_options(class_archive_path(java, package)), _EXIT_SECONDS
        )
    else:
        launched = _launched(options, write_archive_options(archive_to), _ARCHIVING_SECONDS)
    with launched as session:
        yield session


@contextmanager
def _submitted(options: SparkOptions) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(options.app_name)
    for name, value in {**SESSION, **options.conf}.items():
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
def _launched(
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
                _conf(SparkConf, {n: v for n, v in wanted.items() if is_needed_at_launch(n)}),
                popen_kwargs={"stderr": relay.write_end},
            )
            started.append(gateway.proc)
        finally:
            relay.process_started()
        with keep_interrupt_handler():
            context = SparkContext(conf=_conf(SparkConf, wanted), gateway=gateway)
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


def _conf(kind: Any, values: Mapping[str, str]) -> Any:
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
