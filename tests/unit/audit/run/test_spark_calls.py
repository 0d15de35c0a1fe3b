"""Calls into Spark that end early: what they started is over when they have ended."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from pyspark.errors import PySparkException

from mm2slo_audit.spark.spark_engine import call_spark, running_tasks
from mm2slo_lab.managed_process import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

_SLOW = "reflect('java.lang.Thread', 'sleep', 300L)"


class Interrupt(KeyboardInterrupt):
    """The test's own signal."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise `Interrupt` at SIGUSR1."""

    def interrupt(_number: int, _frame: object) -> NoReturn:
        raise Interrupt

    previous = signal.signal(signal.SIGUSR1, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, previous)


def interrupt_main_thread() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)


def test_returns_the_result_and_raises_the_error_of_the_call(spark: SparkSession) -> None:
    assert call_spark(spark, spark.range(7).count) == 7
    with pytest.raises(PySparkException, match="nowhere"):
        call_spark(spark, lambda: spark.read.parquet("/nowhere"))


def test_interrupted_call_has_ended_with_jobs_it_started_later(
    spark: SparkSession, tmp_path: Path
) -> None:
    ended = threading.Event()

    def write() -> None:
        interrupt_main_thread()
        for number in range(3):  # the interrupt comes before the first or between two
            with suppress(Exception):  # cancelled
                spark.range(0, 5, 1, 1).selectExpr(_SLOW).write.parquet(f"{tmp_path}/{number}")
        ended.set()

    with interruptible(), pytest.raises(Interrupt):
        call_spark(spark, write)
    assert ended.is_set()
    assert running_tasks(spark.sparkContext) == 0


def test_interrupted_call_has_no_task_that_still_runs(spark: SparkSession) -> None:
    def collect() -> None:
        spark.range(0, 10, 1, 1).selectExpr(_SLOW).collect()

    def interrupt_when_running() -> None:
        wait_for(lambda: running_tasks(spark.sparkContext) > 0, "a task")
        interrupt_main_thread()

    watcher = threading.Thread(target=interrupt_when_running)
    watcher.start()
    with interruptible(), pytest.raises(Interrupt):
        call_spark(spark, collect)
    watcher.join()
    assert running_tasks(spark.sparkContext) == 0
