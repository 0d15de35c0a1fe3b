"""Calls into Spark of which nothing continues once they have failed or were interrupted."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from mm2slo_audit.session.spark_errors import spark_exceptions
from mm2slo_kafka.background_call import call_in_background

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

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
            _end(spark.sparkContext, returned)
        raise


def _end(context: SparkContext, returned: threading.Event) -> None:
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
