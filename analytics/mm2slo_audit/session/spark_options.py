"""What a Spark session is started with."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.config.audit_config import SparkConfig

_MOST_MEMORY: Final = 4 << 30
_LEAST_MEMORY: Final = 1 << 30
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Where Spark runs and what it may use. The default is this machine, all of its cores."""

    master: str = "local[*]"
    """Ignored under spark-submit, which has chosen one already."""
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    """More Spark properties; they win over the defaults here. May hold secrets."""
    jars: str | None = None
    """Folder (or glob, comma-separated list) of the connector's jars, for a machine without a
    repository; None: Spark's Ivy resolves them."""
    ivy_dir: str | None = None
    """Spark's Ivy cache; None: the user's own."""
    driver_memory: str | None = None
    """Heap of the driver, as Spark writes it (`4g`); None: see `default_driver_memory`."""
    app_name: str = "mm2slo audit"

    @classmethod
    def from_config(cls, config: SparkConfig) -> SparkOptions:
        """Those of `audit.spark` in the configuration."""
        return cls(
            master=config.master,
            conf={name: value.reveal() for name, value in config.conf.items()},
            jars=config.jars,
            ivy_dir=config.ivy_dir,
            driver_memory=config.driver_memory,
        )

    @property
    def local(self) -> bool:
        """Whether driver and executors are one process of this machine."""
        return self.master.partition("[")[0] == "local"


def default_driver_memory() -> str:
    """A quarter of the machine's memory, from 1 to 4 GiB."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{max(_LEAST_MEMORY, min(_MOST_MEMORY, total // 4)) // _MIB}m"


def ivy_directory(options: SparkOptions) -> Path:
    """Where Spark's Ivy keeps jars: that of the options, else Spark 4's default."""
    return Path(options.ivy_dir) if options.ivy_dir else Path.home() / ".ivy2.5.2"
