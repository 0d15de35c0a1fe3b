"""`mm2slo diff`: what changes when one configuration of MirrorMaker 2 replaces another."""

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from mm2slo_cli.config_files import load_source
from mm2slo_cli.config_options import ConfigSource
from mm2slo_cli.mirror_files import name_by_form, read_valid_setups
from mm2slo_core.config import MirrorFilesConfig
from mm2slo_core.mm2_config.compared_flow import SourceNames
from mm2slo_core.mm2_config.connector_keys import kafka_release
from mm2slo_core.mm2_config.file_form import file_form
from mm2slo_core.mm2_config.mirror_setup import MirrorSetup
from mm2slo_core.mm2_config.setup_changes import Change, compare
from mm2slo_core.user_errors import UserError
from mm2slo_kafka.cluster_inspection import ClusterInspection
from mm2slo_kafka.kafka_errors import KafkaOperationError

diff_app = typer.Typer(
    name="diff",
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    add_completion=False,
)
_UNRELATED = {"no-flow", "unsupported-authentication"}
_MOST_NAMES = 20


def _option(metavar: str, text: str) -> Any:
    return typer.Option(metavar=metavar, help=text)


@diff_app.command(no_args_is_help=True)
def run(  # noqa: PLR0913 - one parameter per option
    old: Annotated[Path, typer.Argument(metavar="OLD", help="File or folder, in any form.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="File or folder, in any form.")],
    *,
    topics: Annotated[Path | None, _option("FILE", "Topics of the sources, one per line.")] = None,
    groups: Annotated[Path | None, _option("FILE", "Groups of the sources, one per line.")] = None,
    connect: Annotated[
        bool, typer.Option("--connect", help="List topics and groups on the source clusters.")
    ] = False,
    secrets: Annotated[
        Path | None, _option("DIR", "With --connect: secrets, as files <secret>/<key>.")
    ] = None,
    path: Annotated[
        list[str] | None,
        _option("FROM=TO", "With --connect: where MirrorMaker 2's files are here; repeatable."),
    ] = None,
    kafka_version_old: Annotated[str | None, _option("VERSION", "MirrorMaker 2's in OLD.")] = None,
    kafka_version_new: Annotated[str | None, _option("VERSION", "MirrorMaker 2's in NEW.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what changes when NEW replaces OLD.

    Lists topics and groups that start or stop, copies with other names, what
    is copied again in full, and settings, with consequences. The exit code
    is 0 without changes, 1 with changes, 2 if a file is invalid.

    Example: mm2slo diff mm2.properties mirror.yaml --topics topics.txt
    """
    versions = (kafka_version_old, kafka_version_new)
    for version in filter(None, versions):
        if kafka_release(version) is None:
            raise UserError(f"{version!r} is not a Kafka version; expected one such as 4.1")
    if connect and (topics or groups):
        raise UserError("--connect lists topics and groups itself; leave out --topics and --groups")
    named = [_named(old), _named(new)]
    before, after = (_read(each, file) for each, file in zip(named, (old, new), strict=True))
    if connect:
        names = _names_on_clusters(_source(each, secrets, path or []) for each in named)
    else:
        listed = SourceNames(_lines(topics), _lines(groups))
        flows = (flow.flow for setup in (*before, *after) for flow in setup.flows)
        names = {flow.source: listed for flow in flows}
    changes, notes = compare(before, after, names, versions)
    if as_json:
        found = {label: list(map(asdict, each)) for label, each in changes.items()}
        typer.echo(json.dumps({"flows": found, "notes": notes}, indent=2))
    else:
        typer.echo("\n".join([*_text(changes), *(_wrapped(f"note: {each}") for each in notes)]))
    if changes:
        raise typer.Exit(1)


def _named(file: Path) -> MirrorFilesConfig:
    if not file.is_dir():
        return name_by_form([file])
    try:
        files = sorted(each for each in file.iterdir() if each.is_file())
        return name_by_form([each for each in files if file_form(each.read_bytes())])
    except OSError as error:
        raise UserError(f"cannot read {str(file)!r}: {error}; expected readable files") from None


def _read(named: MirrorFilesConfig, file: Path) -> Sequence[MirrorSetup]:
    setups = read_valid_setups(named, str(file), _UNRELATED)
    if not setups:
        raise UserError(f"{str(file)!r} has no configuration of MirrorMaker 2; expected its files")
    return setups


def _lines(file: Path | None) -> frozenset[str] | None:
    try:
        text = file.read_text(encoding="utf-8") if file else None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {str(file)!r}: {error}; expected one name per line") from None
    return None if text is None else frozenset(filter(None, map(str.strip, text.splitlines())))


def _source(named: MirrorFilesConfig, secrets: Path | None, path: list[str]) -> ConfigSource:
    mm2, strimzi, connect = (
        list(map(Path, each)) for each in (named.properties, named.strimzi, named.connect)
    )
    worker = Path(named.worker) if named.worker else None
    return ConfigSource(None, mm2, strimzi, connect, worker, secrets, path)


def _names_on_clusters(sources: Iterable[ConfigSource]) -> dict[str, SourceNames]:
    found: dict[str, SourceNames] = {}
    for source in sources:
        config, _ = load_source(source)
        for alias in sorted({each.flow.source for each in config.flows} - found.keys()):
            cluster = ClusterInspection(alias, config.clusters[alias].librdkafka_properties())
            try:
                found[alias] = SourceNames(cluster.topics(), cluster.groups())
            except KafkaOperationError as problem:
                raise UserError(f"{problem}; expected access to all source clusters") from None
    return found


def _text(flows: Mapping[str, Sequence[Change]]) -> Iterator[str]:
    for label, changes in flows.items():
        yield label
        for each in changes:
            yield _wrapped(f"{each.effect.replace('-', ' ')}: {each.what}", "  ")
            if names := each.names:
                more = len(names) - _MOST_NAMES
                rest = (f"and {more} more, all with --json",) if more > 0 else ()
                yield _wrapped(f"names: {', '.join((*names[:_MOST_NAMES], *rest))}", "      ")
            yield _wrapped(each.consequence, "      ")
            if each.action:
                yield _wrapped(f"-> {each.action}", "      ")
        yield ""
    if not flows:
        yield "no differences in what is copied"


def _wrapped(text: str, indent: str = "") -> str:
    further = indent + "  "
    return textwrap.fill(
        text, 80, initial_indent=indent, subsequent_indent=further, break_on_hyphens=False
    )
