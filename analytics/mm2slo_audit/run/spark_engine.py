"""Spark behind the engine's port."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Final, Self

from mm2slo_audit.ingestion.run_folders import read_manifest
from mm2slo_audit.run.audit_ports import Landed
from mm2slo_audit.run.engine_error import AuditEngineError
from mm2slo_audit.run.folder_cleanup import absolute, delete, delete_landed_run
from mm2slo_audit.session import spark_session
from mm2slo_store import RunDirectory

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from mm2slo_audit.run.audit_ports import RunScope
    from mm2slo_audit.session import SparkOptions
    from mm2slo_core.audit.audit_scope import UnitScope, Window
    from mm2slo_core.audit.record_sample import Sample
    from mm2slo_core.audit.unit_outcome import UnitOutcome
    from mm2slo_core.config import Config

_SENTENCE: Final = 400
_SHORT: Final = 1_000_000
"""Records of both sides, below which a run is short."""
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_QUICK: Final = "-XX:TieredStopAtLevel=1"


class SparkEngineSource:
    """Starts a session when it is first asked for; leaving the context ends it.

    *lasting*: the session is for more runs than the first.
    """

    def __init__(
        self, config: Config, options: SparkOptions, directory: str, *, lasting: bool = False
    ) -> None:
        self._config = config
        self._options = options
        self._directory = directory
        self._lasting = lasting
        self._engine: SparkEngine | None = None
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._engine = None
        self._opened.close()

    def get(self, records: int) -> SparkEngine:
        """See `EngineSource.get`."""
        if self._engine is not None and not self._engine.alive:
            # Its JVM has died, as of too little memory: following goes on with another one.
            self._engine = None
            self._opened.close()
        if self._engine is None:
            short = records < _SHORT and not self._lasting
            options = tune_for_short_run(self._options) if short else self._options
            session = self._opened.enter_context(spark_session(options))
            self._engine = SparkEngine(session, self._config, self._directory)
        return self._engine


def tune_for_short_run(options: SparkOptions) -> SparkOptions:
    """The same with Java's quick compiler alone.

    A run over few records spends its time on compiling: that halves it (measured: 19 instead of
    35 s of processor time for 52,000 records). A long one gains far more from the thorough one.
    """
    if not options.local:
        return options
    own = options.conf.get(_JAVA_OPTIONS, "")
    return replace(options, conf={**options.conf, _JAVA_OPTIONS: f"{own} {_QUICK}".strip()})


class SparkEngine:
    """Reads by Spark's Kafka connector into *directory*, judges by `mm2slo_audit.engine`."""

    def __init__(self, spark: SparkSession, config: Config, directory: str) -> None:
        self._spark = spark
        self._config = config
        with _told(f"finding {directory}"):
            self._directory = absolute(spark, directory)

    @property
    def alive(self) -> bool:
        """Whether the session answers."""
        context = self._spark.sparkContext._jsc
        try:
            with _told("asking Spark"):
                return context is not None and not context.sc().isStopped()
        except (AuditEngineError, OSError):
            return False

    @property
    def versions(self) -> Mapping[str, str]:
        """Program -> version."""
        return {"mm2slo": version("mm2slo"), "spark": self._spark.version}

    def land(
        self, scoped: RunScope, sample: Sample, run_id: str, on_read: Callable[[int], None]
    ) -> Landed:
        """See `Engine.land`."""
        from mm2slo_audit.ingestion import land

        with _told("reading"):
            found = land(
                self._spark,
                scoped.detail,
                self._config,
                sample,
                self._directory,
                run=run_id,
                on_read=on_read,
            )
            rows = {
                folder: read_manifest(self._spark, folder).rows
                for folder in dict.fromkeys(found.folders.values())
            }
        flows = {scope.index: tuple(each.flow for each in scope.flows) for scope in scoped.scopes}
        return Landed(
            scopes=found.kafka_scopes.scopes,
            data=found,
            failed=tuple(replace(each, flows=flows[index]) for index, each in found.failed.items()),
            directories={
                index: (RunDirectory(folder, rows=rows[folder]),)
                for index, folder in found.folders.items()
            },
        )

    def judge(
        self, landed: Landed, scopes: Sequence[UnitScope], sample: Sample
    ) -> Sequence[UnitOutcome]:
        """See `Engine.judge`."""
        from mm2slo_audit.engine import judge

        with _told("judging"):
            return judge(self._spark, landed.data.records, landed.data.polls, scopes, sample)

    def discard(self, run_id: str, window: Window) -> None:
        """See `Engine.discard`."""
        with _told(f"deleting what {run_id} has landed"):
            # Of a run that was interrupted: a job that goes on would write on.
            self._spark.sparkContext.cancelAllJobs()
            delete_landed_run(self._spark, self._directory, run_id, window)

    def delete(self, paths: Collection[str]) -> None:
        """See `Engine.delete`."""
        for path in paths:
            with _told(f"deleting {path}"):
                delete(self._spark, path)


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Turn what Spark or its JVM raises into one sentence."""
    from py4j.protocol import (  # type: ignore[import-untyped]
        Py4JError,
        Py4JJavaError,
    )
    from pyspark.errors import PySparkException

    try:
        yield
    except Py4JJavaError as error:
        raise AuditEngineError(f"{what} failed: {_first(str(error.java_exception))}") from None
    except (PySparkException, Py4JError) as error:
        raise AuditEngineError(f"{what} failed: {_first(str(error))}") from None


def _first(text: str) -> str:
    """The first line that says something, without the JVM's stack."""
    lines = [line.strip() for line in text.splitlines()]
    said = next((line for line in lines if line and not line.startswith("at ")), "no reason given")
    return said if len(said) <= _SENTENCE else f"{said[:_SENTENCE]} ..."
