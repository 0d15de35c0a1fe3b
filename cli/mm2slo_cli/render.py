"""`mm2slo render`: MirrorMaker 2's configuration in another form, and its ACLs."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, get_args

import typer

from mm2slo_cli import mirror_config_files as mm2
from mm2slo_cli.config_files import write_file
from mm2slo_cli.main import new_app
from mm2slo_cli.mirror_config_files import load_over_setups, name_by_form, read_valid_setups
from mm2slo_core.kafka_permissions import Component
from mm2slo_core.mm2_config.rendered_setup import (
    Principals,
    render_acls,
    render_connect,
    render_kafka_users,
    render_properties,
    render_strimzi,
)
from mm2slo_core.user_errors import UserError

render_app = new_app()

_RENDERERS = {
    "properties": render_properties, "strimzi": render_strimzi, "connect-json": render_connect,
}  # fmt: skip
_ACL_RENDERERS = {"acls": render_acls, "kafka-users": render_kafka_users}
_FORMS = ", ".join([*_RENDERERS, *_ACL_RENDERERS])

# Typer takes no lists of Literals.
_Component = StrEnum("_Component", {each: each for each in get_args(Component)})  # type: ignore[misc]


@render_app.command(no_args_is_help=True)
def run(
    files: mm2.Files,
    *,
    to: Annotated[str, typer.Option(metavar="FORM", help=f"One of {_FORMS}.")],
    worker: mm2.Worker = None,
    components: Annotated[
        list[_Component] | None, typer.Option("--for", help="Whose ACLs; repeatable (default: all)")
    ] = None,
    principal: Annotated[
        str | None, typer.Option(help="Principal of all --for (default: User:mm2slo-COMPONENT).")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="mm2slo.yaml whose own topics and canaries ACLs allow."),
    ] = None,
    output_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write files instead of standard output.")
    ] = None,
) -> None:
    """Write the same flows in another form, or the ACLs that they need.

    Secrets become references, with comments on which to create. The exit code is
    1 if the form cannot say everything; standard error lists what is missing.

    Example: mm2slo render mm2.properties --to strimzi --output-dir k8s
    """
    named = name_by_form([*files, *filter(None, [worker])])
    setups = read_valid_setups(named, ", ".join(map(str, files)))
    if to in _RENDERERS:
        texts, findings = _RENDERERS[to](setups)
    elif to in _ACL_RENDERERS:
        chosen: list[Component] = [
            each for each in get_args(Component) if not components or each in components
        ]
        own: Principals = {f"User:mm2slo-{each}": [each] for each in chosen}
        principals = {principal: chosen} if principal else own
        loaded = None if config is None else load_over_setups(config, setups)
        texts, findings = _ACL_RENDERERS[to](setups, principals, loaded)
    else:
        raise UserError(f"unknown --to {to!r}; use one of {_FORMS}")
    for name, text in texts.items():
        if output_dir:
            write_file(output_dir / name, text)
        typer.echo(f"wrote {output_dir / name}" if output_dir else f"# {name}\n{text}")
    for finding in dict.fromkeys(findings):
        typer.echo(str(finding), err=True)
    if findings:
        raise typer.Exit(1)
