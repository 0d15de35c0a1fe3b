"""`mm2slo slo`: objectives in other tools' words, and back."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mm2slo_cli.config_files import read_config
from mm2slo_core.config import native
from mm2slo_core.errors import UserError
from mm2slo_core.objectives import openslo, sloth

slo_app = typer.Typer(
    name="slo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    add_completion=False,
)


class Format(StrEnum):
    """What `--format` takes."""

    OPENSLO = "openslo"
    SLOTH = "sloth"
    NATIVE = "native"


_WRITERS = {
    Format.OPENSLO: openslo.write,
    Format.SLOTH: sloth.write,
    Format.NATIVE: native.write,
}


@slo_app.callback()
def about() -> None:
    """Objectives: export them to OpenSLO and Sloth, import them from OpenSLO."""


@slo_app.command("export")
def export(
    config: Annotated[Path, typer.Option("--config", metavar="FILE", help="The mm2slo.yaml.")],
    wanted: Annotated[
        Format, typer.Option("--format", help="Whose words: OpenSLO v1, Sloth, or mm2slo.yaml.")
    ] = Format.OPENSLO,
    flow: Annotated[
        list[str] | None,
        typer.Option(metavar="FLOW", help="This flow only, as in 'us->eu'; repeatable."),
    ] = None,
) -> None:
    """Print every objective that holds, the defaults as well."""
    read = read_config(config)
    chosen = {each.flow for each in read.select(flow or [])}
    objectives = [each for each in read.objectives if each.flow in chosen]
    sys.stdout.write(_WRITERS[wanted](objectives))


@slo_app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="OpenSLO v1 documents.")],
) -> None:
    """Print the objectives of an OpenSLO file as the slo section of mm2slo.yaml."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"cannot read {str(file)!r}: {error.strerror}; expected the path of an OpenSLO file"
        ) from None
    except UnicodeDecodeError as error:
        raise UserError(
            f"cannot read {str(file)!r}: byte {error.start} is not UTF-8; expected YAML text"
        ) from None
    sys.stdout.write(native.write(openslo.read(text, str(file))))
