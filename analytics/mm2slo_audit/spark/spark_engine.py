"""The Spark engine behind the port `AuditEngine`.

Nothing continues in Spark once a call into it has failed or was interrupted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Final, Self, TypeVar

from mm2slo_audit.audit_ports import AuditEngineError, LandedRecords
from mm2slo_audit.scope.scope_assembly import RunScope
from mm2slo_audit.spark.run_folders import (
    absolute_url,
    delete_landed_run,
    delete_run_folder,
)
from mm2slo_audit.spark.spark_errors import one_line_errors, spark_exceptions
from mm2slo_audit.spark.spark_properties import SparkOptions
from mm2slo_audit.spark.spark_session import spark_session
from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.config.config_model import Config
from mm2slo_kafka.kafka_errors import call_in_background

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


_SHORT_RUN_RECORDS: Final = 1_000_000
"""Runs with fewer records of both sides are short."""

_SMALL_HEAP_RECORDS: Final = 10_000_000
"""A census of 8 million takes 1.4 GB with a heap of 1 GiB, and half a GB more with 2 GiB."""
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_FAST_COMPILER: Final = "-XX:TieredStopAtLevel=1"
_LATE_OPTIMIZER: Final = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000"
    " -XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
"""Ten times Java's defaults."""


class SparkEngineSource:
    """Starts a session on first use; leaving the context ends it.

    *long_lived*: the session is for more than one run.
    """

    def __init__(
        self, config: Config, options: SparkOptions, directory: str, *, long_lived: bool = False
    ) -> None:
        self._config = config
        self._options = options
        self._directory = directory
        self._long_lived = long_lived
        self._engine: SparkEngine | None = None
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._engine = None
        self._opened.close()

    def get(self, records: int) -> SparkEngine:
        """See `EngineSource.get`."""
        if self._engine is not None and not self._engine.is_alive:
            # Its JVM died, for example from lack of memory: continue with a new one.
            self._engine = None
            self._opened.close()
        if self._engine is None:
            options = self._options
            if not self._long_lived:
                options = tune_for_records(options, records)
            session = self._opened.enter_context(spark_session(options))
            self._engine = SparkEngine(session, self._config, self._directory)
        return self._engine


def tune_for_records(options: SparkOptions, records: int) -> SparkOptions:
    """*options* for one run that reads so many records of both sides in a local Spark.

    A short run spends most time compiling: with only Java's fast compiler (C1) it takes half
    (measured: 19 instead of 35 s of CPU time for 52,000 records). Long runs gain far more from the
    optimizing compiler (C2), but only for what runs per record. At Java's thresholds C2 compiles
    much of Spark's planner: with higher ones it takes half the CPU time (measured: 14 instead of
    26 s, and 58 instead of 75 s in all, for a million records on a busy machine).
    """
    if not options.local:
        return options
    if records < _SMALL_HEAP_RECORDS and options.driver_memory is None:
        options = replace(options, driver_memory="1g")
    compiler = _FAST_COMPILER if records < _SHORT_RUN_RECORDS else _LATE_OPTIMIZER
    own = options.conf.get(_JAVA_OPTIONS, "")
    return replace(options, conf={**options.conf, _JAVA_OPTIONS: f"{own} {compiler}".strip()})


class SparkEngine:
    """Reads by Spark's Kafka connector into *directory* and judges by `mm2slo_audit.engine`."""

    def __init__(self, spark: SparkSession, config: Config, directory: str) -> None:
        self._spark = spark
        self._config = config
        with one_line_errors(f"finding {directory}"):
            self._directory = absolute_url(spark, directory)

    @property
    def is_alive(self) -> bool:
        """Whether the session responds."""
        context = self._spark.sparkContext._jsc
        try:
            with one_line_errors("asking Spark"):
                return context is not None and not context.sc().isStopped()
        except AuditEngineError:
            return False

    @property
    def versions(self) -> Mapping[str, str]:
        """See `AuditEngine.versions`."""
        return {"mm2slo": version("mm2slo"), "spark": self._spark.version}

    def land(
        self, scoped: RunScope, sample: Sample, run_id: str, on_read: Callable[[int], None]
    ) -> LandedRecords:
        """See `AuditEngine.land`."""
        from mm2slo_audit.spark.landed_records import land_records

        with one_line_errors("reading"):
            return call_spark(
                self._spark,
                lambda: land_records(
                    self._spark,
                    scoped,
                    self._config,
                    sample,
                    self._directory,
                    run=run_id,
                    window=scoped.scopes[0].window,
                    on_read=on_read,
                ),
            )

    def discard(self, run_id: str, window: Window) -> None:
        """See `AuditEngine.discard`."""
        with one_line_errors(f"deleting records of {run_id}"):
            delete_landed_run(self._spark, self._directory, run_id, window)

    def delete(self, paths: Collection[str]) -> None:
        """See `AuditEngine.delete`."""
        for path in paths:
            with one_line_errors(f"deleting {path}"):
                delete_run_folder(self._spark, path)


_END_SECONDS: Final = 30.0
"""For tasks that do not end although they are cancelled."""
_CHECK_SECONDS: Final = 0.1
_Result = TypeVar("_Result")


def call_spark(spark: SparkSession, call: Callable[[], _Result]) -> _Result:
    """The result of *call*, which runs Spark jobs.

    If it raises or a signal interrupts it, its jobs are cancelled first, until the call has
    returned and no task runs: what they write can then be deleted. The call has its own thread,
    because an interrupted Py4J call continues in the JVM, and may start the next job there.
    """
    returned = threading.Event()  # not the future: the interrupt may come before it is assigned

    def run() -> _Result:
        try:
            return call()
        finally:
            returned.set()

    try:
        return call_in_background(run, "spark").result()
    except BaseException:
        with suppress(*spark_exceptions()):  # the JVM has ended, and its tasks with it
            _cancel_jobs(spark.sparkContext, returned)
        raise


def _cancel_jobs(context: SparkContext, returned: threading.Event) -> None:
    deadline = time.monotonic() + _END_SECONDS
    while not returned.is_set() or running_tasks(context):
        if time.monotonic() > deadline:
            return
        context.cancelAllJobs()
        time.sleep(_CHECK_SECONDS)


def running_tasks(context: SparkContext) -> int:
    """Tasks that run, also of jobs that were cancelled.

    Not a public API, but `StatusTracker` does not count the tasks of a local Spark.
    """
    scheduler = context._jsc.sc().taskScheduler()
    return int(scheduler.rootPool().runningTasks())
