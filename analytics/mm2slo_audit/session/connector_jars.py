"""The Kafka connector's jars: in Ivy's cache, set by the user, or resolved by Spark's Ivy."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mm2slo_audit.session.spark_options import ivy_directory
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_audit.session.spark_options import SparkOptions

CONNECTOR: Final = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
_NEEDED: Final = (
    "spark-sql-kafka-0-10_2.13",
    "spark-token-provider-kafka-0-10_2.13",
    "kafka-clients",
    "commons-pool2",
)
_RESOLVED: Final = (
    "org.apache.spark_spark-sql-kafka-0-10_2.13-4.0.0.jar",
    "org.apache.spark_spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
    "org.apache.kafka_kafka-clients-3.9.0.jar",
    "org.apache.commons_commons-pool2-2.12.0.jar",
)
"""Ivy's file names for the jars of `CONNECTOR`."""
# Spark includes these.
_EXCLUDED: Final = (
    "com.google.code.findbugs:jsr305",
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.lz4:lz4-java",
    "org.scala-lang.modules:scala-parallel-collections",
    "org.slf4j:slf4j-api",
    "org.xerial.snappy:snappy-java",
)


def connector_properties(options: SparkOptions) -> Mapping[str, str]:
    """Spark properties that add the connector.

    Jars in Ivy's cache are used without asking a repository. Raises UserError if jars that the user
    sets are missing.
    """
    if options.jars is not None:
        return {"spark.jars": ",".join(_given(options.jars))}
    folder = ivy_directory(options) / "jars"
    resolved = [folder / name for name in _RESOLVED]
    if all(path.is_file() for path in resolved):
        return {"spark.jars": ",".join(map(str, resolved))}
    settings = {"spark.jars.packages": CONNECTOR, "spark.jars.excludes": ",".join(_EXCLUDED)}
    if options.ivy_dir is not None:
        settings["spark.jars.ivy"] = options.ivy_dir
    return settings


def air_gap_advice() -> str:
    """How to proceed without a repository."""
    return (
        "without a repository, copy "
        + ", ".join(f"{name}-*.jar" for name in _NEEDED)
        + " from a machine"
        f" that has resolved {CONNECTOR} (folder jars of its ~/.ivy2.5.2) into a local folder and"
        " set it: --jars FOLDER, or audit.spark.jars in mm2slo.yaml (docs/audit-air-gap.md)"
    )


def _given(jars: str) -> Sequence[str]:
    found: list[str] = []
    for part in (each.strip() for each in jars.split(",")):
        if "://" in part:
            found.append(part)
            continue
        folder = Path(part).expanduser()
        pattern = str(folder / "*.jar") if folder.is_dir() else str(folder)
        found += sorted(glob.glob(pattern))  # noqa: PTH207 - the pattern is the user's own path
    missing = [name for name in _NEEDED if not any(f"{name}-" in path for path in found)]
    if missing:
        raise UserError(
            f"{jars} does not contain {', '.join(f'{name}-*.jar' for name in missing)}:"
            f" Spark's Kafka connector needs them; {air_gap_advice()}"
        )
    return found
