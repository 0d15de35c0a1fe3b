"""Options of a Spark session, and the Spark properties that they become.

The Kafka connector's jars are in Ivy's cache, set by the user, or resolved by Spark's Ivy; finding
them is the only file access.
"""

import glob
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple, Self

from mm2slo_core.config.flow_config import SparkConfig
from mm2slo_core.user_errors import UserError

_MAX_MEMORY: Final = 4 << 30
_MIN_MEMORY: Final = 1 << 30
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Where Spark runs and which resources it uses; by default all cores of this machine."""

    master: str = "local[*]"
    """Ignored under spark-submit, which sets its own."""
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Additional Spark properties; they override the defaults. May contain secrets."""
    jars: str | None = None
    """Folder, glob or comma-separated list of the connector's jars, for machines without a
    repository; None: Spark's Ivy resolves them."""
    ivy_dir: str | None = None
    """Spark's Ivy cache; None: the user's."""
    driver_memory: str | None = None
    """Heap of the driver in Spark's format (`4g`); None: see `default_driver_memory`."""
    app_name: str = "mm2slo audit"

    @classmethod
    def from_config(cls, config: SparkConfig) -> Self:
        """The options of `audit.spark`."""
        return cls(
            master=config.master,
            conf={name: value.reveal() for name, value in config.conf.items()},
            jars=config.jars,
            ivy_dir=config.ivy_dir,
            driver_memory=config.driver_memory,
        )

    @property
    def local(self) -> bool:
        """Whether driver and executors are one local process."""
        return self.master.partition("[")[0] == "local"


def default_driver_memory() -> str:
    """A quarter of the machine's memory, at least 1 and at most 4 GiB."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{max(_MIN_MEMORY, min(_MAX_MEMORY, total // 4)) // _MIB}m"


def ivy_directory(options: SparkOptions) -> Path:
    """Spark's Ivy cache: from the options, else Spark 4's default."""
    return Path(options.ivy_dir) if options.ivy_dir else Path.home() / ".ivy2.5.2"


LOG_CONFIG: Final = Path(__file__).with_name("log4j2.properties")
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_PARTITIONS_PER_CORE: Final = 8
_LOCAL_CORES: Final = re.compile(r"local\[(\d+)")
_MAX_SPARE_SLOTS: Final = 4
_PROC, _CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
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

SESSION_PROPERTIES: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.compression.codec": "zstd",
    # With the default of 128 groups, sketches and maps use the slower sort-based aggregation.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "1000000",
    "spark.sql.adaptive.enabled": "true",
    # Otherwise each of some thousand column expressions of a plan passes its line to the JVM.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
"""Required in every session, also under spark-submit."""


def spark_properties(options: SparkOptions, java_options: str = "") -> dict[str, str]:
    """All properties of a session that is not started by spark-submit.

    *java_options*: additional options of the driver's JVM.
    """
    found = {
        "spark.master": _with_slots(options.master),
        "spark.app.name": options.app_name,
        "spark.driver.memory": options.driver_memory or default_driver_memory(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        _JAVA_OPTIONS: f"-Dlog4j2.configurationFile={LOG_CONFIG.as_uri()} {java_options}".strip(),
        **SESSION_PROPERTIES,
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


def _with_slots(master: str) -> str:
    """More tasks than cores where Spark chooses the number.

    A task that reads waits for Kafka between fetches: after each poll, the connector's consumer
    asks for the end of the log, behind its own next fetch on the same connection. Two tasks on two
    cores used two thirds of them. Few more, since each takes a share of the heap.
    """
    cores = _cores(master)
    slots = cores + min(max(1, cores // 2), _MAX_SPARE_SLOTS)
    return f"local[{slots}]" if master == "local[*]" else master


def _cores(master: str) -> int:
    match = _LOCAL_CORES.match(master)
    if match is not None:
        return int(match[1])
    return _usable_cores() if master.startswith("local[*") else 1


def _usable_cores() -> int:
    """As Java counts them: those of this process, up to the quotas of its control groups."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min([cores or 1, *map(math.ceil, _core_quotas())]))


def _core_quotas() -> Iterator[float]:
    """The CPUs that each control group of this process may use, without those that may use all."""
    with suppress(OSError, ValueError):  # not Linux
        for line in (_PROC / "self/cgroup").read_text(encoding="utf-8").splitlines():
            _number, controllers, path = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            root = _CGROUPS / ("cpu" if controllers else "")
            # Up to the root: a container sees its own group there, whatever its path on the host.
            group = PurePosixPath(path)
            for each in (group, *group.parents):
                yield from _quota(root / each.relative_to("/"))


def _quota(group: Path) -> Iterator[float]:
    with suppress(OSError, ValueError):  # cgroup v2; "max": without a limit
        quota, period = (group / "cpu.max").read_text(encoding="ascii").split()
        yield int(quota) / int(period)
    with suppress(OSError, ValueError):  # cgroup v1; -1: without a limit
        quota, period = (
            (group / f"cpu.cfs_{name}_us").read_text(encoding="ascii")
            for name in ("quota", "period")
        )
        if int(quota) > 0:
            yield int(quota) / int(period)


_ARTIFACT: Final = "spark-sql-kafka-0-10_2.13"


class KafkaConnector(NamedTuple):
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
    "4.0": KafkaConnector("4.0.0", "3.9.0", "2.12.0"),
    "4.2": KafkaConnector("4.2.0", "3.9.2", "2.13.1"),
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
        return {"spark.jars": ",".join(_find_given_jars(options.jars))}
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


def installed_connector() -> KafkaConnector:
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


def _find_given_jars(jars: str) -> Sequence[str]:
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
