"""Kafka release lines of the lab.

A version is `4.4.x` (newest patch) or exact, `4.4.0`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mm2slo_lab.lab_errors import LabError

DEFAULT_VERSION = "4.4.x"
SCALA = "2.13"


@dataclass(frozen=True, slots=True)
class Artifact:
    """A Maven module; the revision may be dynamic in Ivy's notation, for example `4.1.+`."""

    organisation: str
    name: str
    revision: str


@dataclass(frozen=True, slots=True)
class ReleaseLine:
    """A Kafka minor release and its logging binding.

    Kafka 4 logs with log4j 2, Kafka 3 with reload4j; the SLF4J binding is not among the runtime
    dependencies of `kafka_2.13`. `topics_excluded` is the default of
    MirrorMaker 2's `topics.exclude` (KIP-1074 changed it in 4.0).
    """

    minor: str
    binding: Artifact
    java: int
    topics_excluded: str
    log_option: str
    log_config: str
    mirror: str = ""
    """The line whose MirrorMaker 2 runs with these brokers; its own if empty."""


_LOG4J2 = """\
status = warn
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = \
  [%d{yyyy-MM-dd'T'HH:mm:ss.SSS'Z'}{UTC}] %p <%t> %X{connector.context}%m (%c)%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
"""
_RELOAD4J = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""

_KAFKA_3 = ReleaseLine(
    minor="3.9",
    binding=Artifact("org.slf4j", "slf4j-reload4j", "1.7.36"),
    java=11,
    topics_excluded=r".*[\-\.]internal, .*\.replica, __.*",
    log_option="log4j.configuration",
    log_config=_RELOAD4J,
)
_KAFKA_4 = ReleaseLine(
    minor="4.3",
    binding=Artifact("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.3"),
    java=17,
    topics_excluded=r"mm2.*\.internal, .*\.replica, __.*",
    log_option="log4j2.configurationFile",
    log_config=_LOG4J2,
)
LINES = (
    # Its connect-mirror cannot be downloaded yet.
    replace(_KAFKA_4, minor="4.4", mirror="4.3"),
    _KAFKA_4,
    *(replace(_KAFKA_4, minor=minor) for minor in ("4.2", "4.1", "4.0")),
    _KAFKA_3,
)


def release_line(version: str) -> ReleaseLine:
    """Return the release line of *version*. Raises LabError if it is not supported."""
    for line in LINES:
        if version.startswith(f"{line.minor}."):
            return line
    known = ", ".join(f"{line.minor}.x" for line in LINES)
    raise LabError(
        f"unsupported Kafka version {version!r}; expected {known}, or a patch release of these"
    )


def mirror_version(version: str) -> str:
    """The version of MirrorMaker 2 that runs with brokers of *version*. Raises LabError."""
    line = release_line(version)
    return f"{line.mirror}.x" if line.mirror else version


def artifacts(version: str) -> tuple[Artifact, ...]:
    """Return the Maven modules of broker, Kafka's tools and, if released, MirrorMaker 2."""
    line = release_line(version)
    revision = f"{line.minor}.+" if version == f"{line.minor}.x" else version
    mirror = ("connect-mirror", "connect-mirror-client", "connect-runtime", "connect-json")
    kafka = (f"kafka_{SCALA}", "kafka-tools", *(() if line.mirror else mirror))
    return (*(Artifact("org.apache.kafka", name, revision) for name in kafka), line.binding)
