"""The Kafka connector's jars: in Ivy's cache, set by the user, or resolved by Spark's Ivy."""

from __future__ import annotations

import glob
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_audit.session.spark_options import ivy_directory
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_audit.session.spark_options import SparkOptions

_ARTIFACT: Final = "spark-sql-kafka-0-10_2.13"


class Connector(NamedTuple):
    """The Kafka connector of a line of Spark, with the versions of what Spark lacks for it."""

    version: str
    kafka_clients: str
    commons_pool: str

    @property
    def coordinates(self) -> str:
        """As `--packages` takes them."""
        return f"org.apache.spark:{_ARTIFACT}:{self.version}"

    @property
    def jars(self) -> tuple[str, ...]:
        """Their names in Ivy's cache."""
        return (
            f"org.apache.spark_{_ARTIFACT}-{self.version}.jar",
            f"org.apache.spark_spark-token-provider-kafka-0-10_2.13-{self.version}.jar",
            f"org.apache.kafka_kafka-clients-{self.kafka_clients}.jar",
            f"org.apache.commons_commons-pool2-{self.commons_pool}.jar",
        )


CONNECTORS: Final = {
    "4.0": Connector("4.0.0", "3.9.0", "2.12.0"),
    "4.2": Connector("4.2.0", "3.9.2", "2.13.1"),
}
"""By the line of Spark; each has passed the audit's tests on real clusters."""
TESTED_LINES: Final = " or ".join(f"{line}.x" for line in CONNECTORS)
PACKAGES: Final = " or ".join(each.coordinates for each in CONNECTORS.values())
_NEEDED: Final = (
    "spark-sql-kafka-0-10_2.13",
    "spark-token-provider-kafka-0-10_2.13",
    "kafka-clients",
    "commons-pool2",
)
# Spark includes these.
_EXCLUDED: Final = (
    "com.google.code.findbugs:jsr305",
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "at.yawk.lz4:lz4-java",
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
    connector = installed_connector()
    resolved = [folder / name for name in connector.jars]
    if all(path.is_file() for path in resolved):
        return {"spark.jars": ",".join(map(str, resolved))}
    settings = {
        "spark.jars.packages": connector.coordinates,
        "spark.jars.excludes": ",".join(_EXCLUDED),
    }
    if options.ivy_dir is not None:
        settings["spark.jars.ivy"] = options.ivy_dir
    return settings


def installed_connector() -> Connector:
    """The connector of the installed Spark. Raises UserError for a line that was not tested."""
    version = import_module("pyspark.version").__version__
    found = CONNECTORS.get(".".join(version.split(".")[:2]))
    if found is None:
        raise UserError(
            f"Spark {version} is installed, and the audit was tested with Spark {TESTED_LINES}:"
            " install one of these, or set the jars of this Spark's Kafka connector with --jars or"
            " audit.spark.jars (docs/audit-air-gap.md)"
        )
    return found


def air_gap_advice() -> str:
    """How to proceed without a repository."""
    return (
        "without a repository, copy "
        + ", ".join(f"{name}-*.jar" for name in _NEEDED)
        + f" from a machine that has resolved {PACKAGES} (folder jars of its ~/.ivy2.5.2) into a"
        " local folder and set it: --jars FOLDER, or audit.spark.jars in mm2slo.yaml"
        " (docs/audit-air-gap.md)"
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
