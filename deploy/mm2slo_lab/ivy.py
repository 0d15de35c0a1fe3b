"""Apache Ivy, as PySpark ships it: the module file and the command line (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from mm2slo_lab.versions import Artifact

RETRIEVE_PATTERN = "[artifact]-[revision](-[classifier]).[ext]"


def render_module(artifacts: Iterable[Artifact]) -> str:
    """The ivy.xml that asks for *artifacts* with all they need at run time.

    `default->default` maps Maven's runtime scope; Ivy's own resolver settings name the
    repository, so that an organisation's mirror is configured where it always is: in Ivy.
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
    """Download what *module* asks for into *target*; *settings* replaces Ivy's own."""
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
