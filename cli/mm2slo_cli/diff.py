"""`mm2slo diff`: what changes when one configuration of MirrorMaker 2 replaces another."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from mm2slo_cli import mirror_config_files as mm2
from mm2slo_cli.main import new_app
from mm2slo_cli.mirror_config_files import mirror_files, name_by_form, read_valid_setups
from mm2slo_core.config.config_loader import BaseConfig
from mm2slo_core.mm2_config.config_overlay import combine_setups
from mm2slo_core.mm2_config.mirror_setup import file_form
from mm2slo_core.mm2_config.setup_changes import Change, SourceNames, compare_setups
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.cluster_inspection import ClusterInspection
from mm2slo_kafka.kafka_errors import KafkaOperationError

diff_app = new_app()
_UNRELATED = {"no-flow", "unsupported-authentication"}
_MOST_NAMES = 20

_Names = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Names on the sources, one per line.")
]


@diff_app.command(no_args_is_help=True)
def run(  # noqa: PLR0913 - one parameter per option
    old: Annotated[Path, typer.Argument(metavar="OLD", help="File or folder, in any form.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="File or folder, in any form.")],
    *,
    topics: _Names = None,
    groups: _Names = None,
    connect: Annotated[
        bool, typer.Option("--connect", help="List topics and groups on the source clusters.")
    ] = False,
    secrets: mm2.Secrets = None,
    path: mm2.Paths = None,
    kafka_version_old: mm2.Version = None,
    kafka_version_new: mm2.Version = None,
    as_json: mm2.AsJson = False,
) -> None:
    """Show what changes when NEW replaces OLD.

    Lists topics and groups that start or stop, copies with other names, what
    is copied again in full, and settings, with consequences. The exit code
    is 0 without changes, 1 with changes, 2 if a file is invalid.

    Example: mm2slo diff mm2.properties mirror.yaml --topics topics.txt
    """
    if connect and (topics or groups):
        raise UserError("--connect lists topics and groups itself; leave out --topics and --groups")
    listed = SourceNames(_lines(topics), _lines(groups))
    names: dict[str, SourceNames] = {}
    setups = []
    for file in (old, new):
        named = name_by_form(_files(file), secrets=secrets, paths=path)
        setups.append(read_valid_setups(named, str(file), _UNRELATED))
        if not setups[-1]:
            problem = f"{str(file)!r} has no configuration of MirrorMaker 2"
            raise UserError(f"{problem}; expected its files")
        sources = {flow.flow.source for setup in setups[-1] for flow in setup.enabled_flows}
        if connect:
            base, _ = combine_setups(setups[-1], mirror_files(named), {})
            names |= _names_on_clusters(base, str(file), sorted(sources - names.keys()))
        else:
            names |= dict.fromkeys(sources, listed)
    changes, notes = compare_setups(
        setups[0], setups[1], names, (kafka_version_old, kafka_version_new)
    )
    if as_json:
        found = {label: list(map(asdict, each)) for label, each in changes.items()}
        typer.echo(json.dumps({"flows": found, "notes": notes}, indent=2))
    else:
        typer.echo("\n".join([*_text(changes), *(mm2.wrapped(f"note: {each}") for each in notes)]))
    if changes:
        raise typer.Exit(1)


def _files(file: Path) -> Sequence[Path]:
    if not file.is_dir():
        return [file]
    try:
        files = sorted(each for each in file.iterdir() if each.is_file())
        return [each for each in files if file_form(each.read_bytes())]
    except OSError as error:
        raise UserError(f"cannot read {str(file)!r}: {error}; expected readable files") from None


def _lines(file: Path | None) -> frozenset[str] | None:
    try:
        text = file.read_text(encoding="utf-8") if file else None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {str(file)!r}: {error}; expected one name per line") from None
    return None if text is None else frozenset(filter(None, map(str.strip, text.splitlines())))


def _names_on_clusters(
    base: BaseConfig, title: str, aliases: Sequence[str]
) -> dict[str, SourceNames]:
    try:
        return {
            alias: SourceNames(frozenset(cluster.topics()), cluster.groups())
            for alias, properties in mm2.connections(base, title, aliases).items()
            for cluster in [ClusterInspection(alias, properties)]
        }
    except KafkaOperationError as problem:
        raise UserError(f"{problem}; expected access to all source clusters") from None


def _text(flows: Mapping[str, Sequence[Change]]) -> Iterator[str]:
    for label, changes in flows.items():
        yield label
        for each in changes:
            yield mm2.wrapped(f"{each.effect.replace('-', ' ')}: {each.what}", "  ")
            if names := each.names:
                more = len(names) - _MOST_NAMES
                rest = (f"and {more} more, all with --json",) if more > 0 else ()
                yield mm2.wrapped(f"names: {', '.join((*names[:_MOST_NAMES], *rest))}", "      ")
            yield mm2.wrapped(each.consequence, "      ")
            if each.action:
                yield mm2.wrapped(f"-> {each.action}", "      ")
        yield ""
    if not flows:
        yield "no differences in what is copied"
