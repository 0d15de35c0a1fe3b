"""The Kafka connector's jars: on disk already, given by the user, or resolved by Spark's Ivy."""

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
"""As Ivy names what `CONNECTOR` asks for."""
# Spark ships these itself.
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
    """Spark's properties that bring the connector.

    What Ivy has resolved before is taken from its folder: no look at a repository at each start.
    Raises UserError when the jars that the user names are not all there.
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
    """How to go on without a repository."""
    return (
        "without one, copy " + ", ".join(f"{name}-*.jar" for name in _NEEDED) + " from a machine"
        f" that has resolved {CONNECTOR} (folder jars of its ~/.ivy2.5.2) into a folder here and"
        " name it: --jars FOLDER, or audit.spark.jars in mm2slo.yaml (docs/audit-air-gap.md)"
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
            f"{jars} does not hold {', '.join(f'{name}-*.jar' for name in missing)}:"
            f" the Kafka connector of Spark needs them; {air_gap_advice()}"
        )
    return found
