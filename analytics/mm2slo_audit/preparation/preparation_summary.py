"""What preparing did, for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console

    from mm2slo_audit.preparation.spark_preparation import Preparation

_MIB: Final = 1 << 20


def write(console: Console, done: Preparation) -> None:
    """One line each: Spark, the rehearsal, the archive."""
    for line in lines(done):
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def lines(done: Preparation) -> tuple[str, ...]:
    """Of a preparation that came to its end."""
    java = done.java.version.partition("\n")[0]
    if done.archive is None:
        archive = f"no class archive: {done.java.path} wrote none; audits run without it"
    else:
        archive = f"class archive: {done.archive} ({done.size / _MIB:.0f} MiB); audits map it"
    return (
        f"Spark {done.spark} runs on {java} ({done.java.path})",
        "an audit of made-up records found the loss and the duplicate that are in them",
        archive,
    )
