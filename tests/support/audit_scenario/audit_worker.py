"""`python -m audit_scenario.audit_worker OPTIONS`: runs audits through the product's modules.

Each line on standard input names the files of a request and of its result.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from audit_scenario.audit_process import AuditRequest, AuditResult
from mm2slo_audit.engine.judgement import judge
from mm2slo_audit.scope.cluster_readings import open_clients
from mm2slo_audit.scope.scope_reader import read_scopes
from mm2slo_audit.spark.landed_records import LandedFrames, land_records
from mm2slo_audit.spark.spark_properties import SparkOptions
from mm2slo_audit.spark.spark_session import spark_session
from mm2slo_core.audit.audit_conclusion import conclude
from mm2slo_core.audit.audit_scope import TimestampType, UnitScope
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import UnitOutcome
from mm2slo_core.config.config_loader import load_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MEMORY: Final = "1g"


class _Stages:
    """Duration of each stage, in seconds."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.monotonic()

    def ended(self, stage: str) -> None:
        now = time.monotonic()
        self.seconds[stage] = round(now - self._last, 1)
        self._last = now


def run(request: AuditRequest, spark: SparkSession, directory: str) -> AuditResult:
    """Read scopes, land records, judge and conclude."""
    stages = _Stages()
    config, sample = load_config(request.config), Sample(request.sample)
    with open_clients(config) as clients:
        scoped = read_scopes(
            config,
            request.flows,
            request.topics,
            request.window,
            clients,
            max_pending=request.max_pending,
        )
        stages.ended("scopes")
        landed = land_records(spark, scoped, config, sample, directory, run="test", clients=clients)
        stages.ended("landing")
    judged = _judge(spark, landed, request, sample, lambda scope: scope)
    stages.ended("judging")
    unstamped = _judge(spark, landed, request, sample, _unstamped)
    stages.ended("unstamped")
    not_audited = (*scoped.not_audited, *landed.failed)
    return AuditResult(
        outcomes=_by_topic(judged),
        not_audited=not_audited,
        conclusion=conclude(judged, not_audited, sample=sample),
        seconds=stages.seconds,
        notes=scoped.notes,
        unstamped=_by_topic(unstamped),
    )


def _judge(
    spark: SparkSession,
    landed: LandedFrames,
    request: AuditRequest,
    sample: Sample,
    seen: Callable[[UnitScope], UnitScope | None],
) -> list[UnitOutcome]:
    scopes = [chosen for each in landed.scopes if (chosen := seen(each)) is not None]
    return judge(
        spark, landed.records, landed.polls, scopes, sample, evidence_cap=request.evidence_cap
    )


def _by_topic(outcomes: Sequence[UnitOutcome]) -> dict[str, UnitOutcome]:
    return {each.scope.target_topic: each for each in outcomes}


def _unstamped(scope: UnitScope) -> UnitScope | None:
    """The scope without append times; None if the target has none."""
    if scope.target_time is not TimestampType.LOG_APPEND:
        return None
    flows = tuple(replace(flow, source_time=TimestampType.CREATE) for flow in scope.flows)
    return replace(scope, target_time=TimestampType.CREATE, flows=flows)


def main() -> None:
    """Process requests until standard input ends."""
    master, conf = pickle.loads(Path(sys.argv[1]).read_bytes())  # noqa: S301 - our parent's
    options = SparkOptions(master=master, driver_memory=_MEMORY, conf=conf, app_name="mm2slo tests")
    with spark_session(options) as spark:
        for line in sys.stdin:
            request_file, result_file = map(Path, line.rstrip("\n").split("\t"))
            request: AuditRequest = pickle.loads(request_file.read_bytes())  # noqa: S301 - our parent's
            with tempfile.TemporaryDirectory(prefix="mm2slo-landed-") as directory:
                result_file.write_bytes(pickle.dumps(run(request, spark, directory)))
            print("done", flush=True)


if __name__ == "__main__":
    main()
