"""The options that name a configuration: one set for all commands."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Final, get_type_hints

import typer
from typer.core import TyperCommand

_Command = Callable[..., None]
_CONFIG_VARIABLE: Final = "MM2SLO_CONFIG"

CONFIG_OPTION: Final = typer.Option(
    "--config", metavar="FILE", envvar=_CONFIG_VARIABLE, help="Path of mm2slo.yaml."
)

CONFIG_OR_DEFAULTS: Final = typer.Option(
    "--config",
    metavar="FILE",
    envvar=_CONFIG_VARIABLE,
    help="Path of mm2slo.yaml. [default: the default objectives]",
)


class FileCommand(TyperCommand):
    """A command without arguments: its error for one names the option for a file."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.allow_extra_args = True
        rest = super().parse_args(ctx, args)
        if rest:
            ctx.fail(f"Unexpected argument {rest[0]!r}; give a configuration with --config FILE")
        return rest


def _option(name: str, metavar: str, text: str) -> Any:
    return typer.Option(
        f"--{name}",
        metavar=metavar,
        envvar=f"MM2SLO_{name.replace('-', '_').upper()}",
        help=text,
        rich_help_panel="MirrorMaker 2's own configuration",
    )


_MM2: Final = _option("mm2", "FILE", "Properties file of dedicated mode; repeatable.")

_STRIMZI: Final = _option(
    "strimzi", "FILE", "KafkaMirrorMaker2 of Strimzi or Event Streams; repeatable."
)

_CONNECT: Final = _option(
    "connect-json", "FILE", "Connectors on Kafka Connect, as JSON; repeatable."
)
_WORKER: Final = _option("worker", "FILE", "Properties file of the Connect workers.")
_SECRETS: Final = _option("secrets", "DIR", "Kubernetes secrets, as files <secret>/<key>.")

_PATH: Final = _option(
    "path", "FROM=TO", "Where a file or folder of MirrorMaker 2 is here; repeatable."
)


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """Where the configuration is: mm2slo.yaml, MirrorMaker 2's own files, or both.

    Falsy if none is given.
    """

    config: Annotated[Path | None, CONFIG_OPTION] = None
    mm2: Annotated[list[Path], _MM2] = field(default_factory=list)
    strimzi: Annotated[list[Path], _STRIMZI] = field(default_factory=list)
    connect_json: Annotated[list[Path], _CONNECT] = field(default_factory=list)
    worker: Annotated[Path | None, _WORKER] = None
    secrets: Annotated[Path | None, _SECRETS] = None
    path: Annotated[list[str], _PATH] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.config or self.mm2 or self.strimzi or self.connect_json)

    @property
    def name(self) -> str:
        """The name of the configuration in reports of its problems."""
        files = [self.config] if self.config else [*self.mm2, *self.strimzi, *self.connect_json]
        return ", ".join(map(str, files))

    def arguments(self) -> list[str]:
        """The options that lead to this source."""
        found = []
        for name, value in ((each.name, getattr(self, each.name)) for each in fields(self)):
            for one in value if isinstance(value, list) else [value] if value else []:
                found += [f"--{name.replace('_', '-')}", str(one)]
        return found


def config_options(config: Any = CONFIG_OPTION) -> Callable[[_Command], _Command]:
    """Give a command with the parameter `source: ConfigSource` the options for it.

    *config* declares how mm2slo.yaml is given.
    """
    hints = get_type_hints(ConfigSource, include_extras=True)
    hints["config"] = Annotated[Path | None, config]
    kind = inspect.Parameter.KEYWORD_ONLY
    first, *others = (
        inspect.Parameter(name, kind, default=getattr(ConfigSource(), name), annotation=hint)
        for name, hint in hints.items()
    )

    def decorate(command: _Command) -> _Command:
        @functools.wraps(command)
        def run(**given: Any) -> None:
            source = ConfigSource(**{name: given.pop(name) for name in hints})
            command(source=source, **given)

        own = inspect.signature(command, eval_str=True).parameters.values()
        parameters = [first if each.name == "source" else each.replace(kind=kind) for each in own]
        signature = inspect.Signature([*parameters, *others])
        run.__signature__ = signature  # type: ignore[attr-defined]
        run.__annotations__ = {name: each.annotation for name, each in signature.parameters.items()}
        return run

    return decorate
