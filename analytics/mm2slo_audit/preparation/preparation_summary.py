"""Summary of a preparation for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_audit.session.connector_jars import CONNECTORS

if TYPE_CHECKING:
    from rich.console import Console

    from mm2slo_audit.preparation.spark_preparation import Preparation

_MIB: Final = 1 << 20


def write_summary(console: Console, done: Preparation) -> None:
    """Print one line each about Spark, the self-test and the class archive."""
    for line in summary_lines(done):
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def summary_lines(done: Preparation) -> tuple[str, ...]:
    java = done.java.version.partition("\n")[0]
    if done.archive is None:
        archive = f"no class archive: {done.java.path} wrote none; audits run without it"
    else:
        archive = f"class archive: {done.archive} ({done.size / _MIB:.0f} MiB); audits map it"
    tested = (f"{line}.x with {each.version}" for line, each in CONNECTORS.items())
    return (
        f"Spark {done.spark} runs on {java} ({done.java.path})",
        f"tested with Kafka connectors: Spark {', '.join(tested)}",
        "self-test passed: the audit found the lost and the duplicate record",
        archive,
    )
