"""Module file and command line of the Apache Ivy in PySpark (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from mm2slo_lab.kafka_versions import Artifact

RETRIEVE_PATTERN = "[artifact]-[revision](-[classifier]).[ext]"


def render_module(artifacts: Iterable[Artifact]) -> str:
    """Render the ivy.xml for *artifacts* and their runtime dependencies.

    `default->default` maps Maven's runtime scope. Repositories come from Ivy's settings, so that
    mirrors are configured there.
    """
    dependencies = "\n".join(
        f"    <dependency org={quoteattr(artifact.organisation)}"
        f" name={quoteattr(artifact.name)} rev={quoteattr(artifact.revision)}/>"
        for artifact in artifacts
    )
    return (
        '<ivy-module version="2.0">\n'
        '  <info organisation="mm2slo" module="lab"/>\n'
        '  <configurations><conf name="default"/></configurations>\n'
        '  <dependencies defaultconf="default->default">\n'
        f"{dependencies}\n"
        "  </dependencies>\n"
        "</ivy-module>\n"
    )


def command(
    *, java: str, ivy_jar: Path, module: Path, cache: Path, target: Path, settings: Path | None
) -> tuple[str, ...]:
    """Return the command that downloads the jars of *module* to *target*."""
    return (
        java,
        "-Xmx256m",
        "-XX:TieredStopAtLevel=1",
        "-jar",
        str(ivy_jar),
        *(() if settings is None else ("-settings", str(settings))),
        "-ivy",
        str(module),
        "-cache",
        str(cache),
        "-confs",
        "default",
        "-types",
        "jar",
        "bundle",
        "-retrieve",
        f"{target}/{RETRIEVE_PATTERN}",
    )
