"""The Kafka release lines that the lab runs: the one place that names versions.

A line is asked for as `4.1.x` (its newest patch) or by an exact version, `4.1.1`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mm2slo_lab.errors import LabError

DEFAULT_VERSION = "4.1.x"
SCALA = "2.13"


@dataclass(frozen=True, slots=True)
class Artifact:
    """One Maven module; the revision may be dynamic in Ivy's notation, as in `4.1.+`."""

    organisation: str
    name: str
    revision: str


@dataclass(frozen=True, slots=True)
class ReleaseLine:
    """A Kafka minor release and the logging binding that its jars leave to the user.

    Kafka 4 logs through log4j 2, Kafka 3 through reload4j; neither broker brings the SLF4J
    binding (`kafka_2.13` declares it as compile-only). `topics_excluded` is the default of
    MirrorMaker 2's `topics.exclude` (KIP-1074 changed it in 4.0).
    """

    minor: str
    binding: Artifact
    java: int
    topics_excluded: str
    log_option: str
    log_config: str


_LOG4J2 = """\
status = warn
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
"""
_RELOAD4J = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""

LINES = (
    ReleaseLine(
        minor="4.1",
        binding=Artifact("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.3"),
        java=17,
        topics_excluded=r"mm2.*\.internal, .*\.replica, __.*",
        log_option="log4j2.configurationFile",
        log_config=_LOG4J2,
    ),
    ReleaseLine(
        minor="3.9",
        binding=Artifact("org.slf4j", "slf4j-reload4j", "1.7.36"),
        java=11,
        topics_excluded=r".*[\-\.]internal, .*\.replica, __.*",
        log_option="log4j.configuration",
        log_config=_RELOAD4J,
    ),
)


def release_line(version: str) -> ReleaseLine:
    """The line that *version* belongs to.

    Raises LabError for a line that the lab does not know.
    """
    for line in LINES:
        if version.startswith(f"{line.minor}."):
            return line
    known = ", ".join(f"{line.minor}.x" for line in LINES)
    raise LabError(f"the lab does not run Kafka {version!r}: choose one of {known}, or a patch")


def artifacts(version: str) -> tuple[Artifact, ...]:
    """The Maven modules that a broker, MirrorMaker 2, Connect and Kafka's tools need."""
    line = release_line(version)
    revision = f"{line.minor}.+" if version == f"{line.minor}.x" else version
    kafka = (
        f"kafka_{SCALA}",
        "connect-mirror",
        "connect-mirror-client",
        "connect-runtime",
        "connect-json",
        "kafka-tools",
    )
    return (*(Artifact("org.apache.kafka", name, revision) for name in kafka), line.binding)
