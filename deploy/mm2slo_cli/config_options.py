"""The options that name a configuration, one set for all commands."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.models import ParameterInfo

    _Command = Callable[..., None]


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """Where the configuration is: mm2slo.yaml, MirrorMaker 2's own files, or both.

    Falsy if none is given. *path* are `FROM=TO`.
    """

    config: Path | None = None
    mm2: tuple[Path, ...] = ()
    strimzi: tuple[Path, ...] = ()
    connect: tuple[Path, ...] = ()
    worker: Path | None = None
    secrets: Path | None = None
    path: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.config or self.mm2 or self.strimzi or self.connect)

    @property
    def name(self) -> str:
        """The name of the configuration in reports of its problems."""
        files = [self.config] if self.config else [*self.mm2, *self.strimzi, *self.connect]
        return ", ".join(map(str, files))

    def arguments(self) -> list[str]:
        """The options that lead to this source."""
        found = []
        for each in fields(self):
            value = getattr(self, each.name)
            for one in value if isinstance(value, tuple) else [value] if value else []:
                found += [f"--{each.name}", str(one)]
        return found


def _option(name: str, metavar: str, text: str) -> Any:
    panel = "MirrorMaker 2's own configuration"
    return typer.Option(f"--{name}", metavar=metavar, help=text, rich_help_panel=panel)


MIRROR_OPTIONS: Final[dict[str, Any]] = {
    "mm2": _option("mm2", "FILE", "Properties file of dedicated mode; repeatable."),
    "strimzi": _option(
        "strimzi", "FILE", "KafkaMirrorMaker2 of Strimzi or Event Streams; repeatable."
    ),
    "connect": _option("connect", "FILE", "Connectors on Kafka Connect, as JSON; repeatable."),
    "worker": _option("worker", "FILE", "Properties file of the Connect workers."),
    "secrets": _option("secrets", "DIR", "Kubernetes secrets, as files <secret>/<key>."),
    "path": _option(
        "path", "FROM=TO", "Where a file or folder of MirrorMaker 2 is here; repeatable."
    ),
}
_TYPES: Final[dict[str, Any]] = {"worker": Path, "secrets": Path, "path": list[str]}
CONFIG_OPTION: Final = typer.Option("--config", metavar="FILE", help="Path of mm2slo.yaml.")
CONFIG_OR_DEFAULTS: Final = typer.Option(
    "--config", metavar="FILE", help="Path of mm2slo.yaml. [default: the default objectives]"
)
CONFIG_ARGUMENT: Final = typer.Argument(metavar="FILE", help="Path of mm2slo.yaml.")


def config_options(config: ParameterInfo = CONFIG_OPTION) -> Callable[[_Command], _Command]:
    """Give a command with the parameter `source: ConfigSource` the options for it.

    *config* declares how mm2slo.yaml is given.
    """
    options = {"config": Annotated[Path | None, config]} | {
        name: Annotated[_TYPES.get(name, list[Path]) | None, option]
        for name, option in MIRROR_OPTIONS.items()
    }

    def decorate(command: _Command) -> _Command:
        @functools.wraps(command)
        def run(**given: Any) -> None:
            values = {name: given.pop(name) for name in options}
            values = {
                name: tuple(value) if isinstance(value, list) else value
                for name, value in values.items()
                if value is not None
            }
            command(source=ConfigSource(**values), **given)

        first, *others = (
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            for name, kind in options.items()
        )
        own = inspect.signature(command, eval_str=True).parameters.values()
        parameters = [
            first if each.name == "source" else each.replace(kind=first.kind) for each in own
        ] + others
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorate
