"""What `mm2slo lint`, `diff` and `render` have in common: options, connections, long lines."""

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from mm2slo_core.config import BaseConfig, ClusterConfig, ConfigError, Problem
from mm2slo_core.mm2_config.connector_keys import NEWEST_VERSION, known_release
from mm2slo_core.user_errors import UserError

NEWEST = f"Kafka {NEWEST_VERSION.major}.{NEWEST_VERSION.minor}"


def _check_version(option: typer.CallbackParam, value: str | None) -> str | None:
    if value and known_release(value) is None:
        raise UserError(
            f"{option.opts[0]} {value!r} is not a known version; expected one from Kafka 2.4 to"
            f" {NEWEST}, such as 4.1.2"
        )
    return value


Files = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="Files of MirrorMaker 2, in any form.")
]
Worker = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Properties file of Connect workers.")
]
Secrets = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Secrets, as files <secret>/<key>.")
]
Paths = Annotated[
    list[str] | None,
    typer.Option(metavar="FROM=TO", help="Where MirrorMaker 2's files are here; repeatable."),
]
Version = Annotated[
    str | None,
    typer.Option(
        metavar="VERSION", callback=_check_version, help="MirrorMaker 2's version, such as 4.1."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def connections(base: BaseConfig, title: str, aliases: Iterable[str]) -> dict[str, dict[str, str]]:
    """Properties of librdkafka by alias. Raises ConfigError with *title* if they are incomplete."""
    found = {}
    for alias in aliases:
        # Security that cannot be read is absent, and must not become the default.
        section = {"security": None, **base.clusters[alias]}
        try:
            found[alias] = ClusterConfig.model_validate(section).librdkafka_properties()
        except ValidationError:
            missing = Problem(f"clusters.{alias}", "is incomplete", "bootstrap servers, security")
            raise ConfigError(title, base.problems or [missing]) from None
    return found


def wrapped(text: str, indent: str = "", hanging: str = "  ") -> str:
    """*text* in 80 columns. Values of files may have control characters."""
    printable = "".join(each if each.isprintable() else " " for each in text)
    further = indent + hanging
    return textwrap.fill(
        printable, 80, initial_indent=indent, subsequent_indent=further, break_on_hyphens=False
    )
