"""Spark properties of an audit (pure, except for listing jars)."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mm2slo_audit.session.connector_jars import connector_properties
from mm2slo_audit.session.spark_options import default_driver_memory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_audit.session.spark_options import SparkOptions

LOG_CONFIG: Final = Path(__file__).with_name("log4j2.properties")
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_PARTITIONS_PER_CORE: Final = 8
_LOCAL_CORES: Final = re.compile(r"local\[(\d+)")
_LOOPBACK: Final = re.compile(r"local\b|spark://(127\.0\.0\.1|localhost|\[::1\])[:,]")
# Properties the JVM needs at launch; others may be secret and are kept off its command line.
_AT_LAUNCH: Final = (
    "spark.master",
    "spark.app.name",
    "spark.jars",
    "spark.driver.",
    "spark.submit.",
    "spark.yarn.",
    "spark.kubernetes.",
)

SESSION: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.compression.codec": "zstd",
    # With the default of 128 groups, sketches and maps use the slower sort-based aggregation.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "1000000",
    "spark.sql.adaptive.enabled": "true",
}
"""Required in every session, also under spark-submit."""


def spark_properties(options: SparkOptions, java_options: str = "") -> dict[str, str]:
    """All properties of a session that is not started by spark-submit.

    *java_options*: additional options of the driver's JVM.
    """
    found = {
        "spark.master": options.master,
        "spark.app.name": options.app_name,
        "spark.driver.memory": options.driver_memory or default_driver_memory(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        _JAVA_OPTIONS: f"-Dlog4j2.configurationFile={LOG_CONFIG.as_uri()} {java_options}".strip(),
        **SESSION,
        **connector_properties(options),
    }
    if options.local:
        found[_JAVA_OPTIONS] += " -XX:+UseParallelGC"
        found["spark.sql.shuffle.partitions"] = str(_PARTITIONS_PER_CORE * _cores(options.master))
    if _LOOPBACK.match(options.master):
        # The driver does not start if its host name resolves to an address of another network.
        found |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return _merged(found, options.conf)


def is_needed_at_launch(name: str) -> bool:
    """Whether the JVM needs the property *name* at launch."""
    return name.startswith(_AT_LAUNCH)


def _merged(found: dict[str, str], more: Mapping[str, str]) -> dict[str, str]:
    own = found[_JAVA_OPTIONS]
    found = found | dict(more)
    if _JAVA_OPTIONS in more:
        found[_JAVA_OPTIONS] = f"{own} {more[_JAVA_OPTIONS]}"
    return found


def _cores(master: str) -> int:
    match = _LOCAL_CORES.match(master)
    if match is not None:
        return int(match[1])
    return os.cpu_count() or 1 if master.startswith("local[*") else 1
