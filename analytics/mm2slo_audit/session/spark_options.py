"""Options of a Spark session."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.config.audit_config import SparkConfig

_MAX_MEMORY: Final = 4 << 30
_MIN_MEMORY: Final = 1 << 30
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Where Spark runs and which resources it uses; by default all cores of this machine."""

    master: str = "local[*]"
    """Ignored under spark-submit, which sets its own."""
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Additional Spark properties; they override the defaults. May contain secrets."""
    jars: str | None = None
    """Folder, glob or comma-separated list of the connector's jars, for machines without a
    repository; None: Spark's Ivy resolves them."""
    ivy_dir: str | None = None
    """Spark's Ivy cache; None: the user's."""
    driver_memory: str | None = None
    """Heap of the driver in Spark's format (`4g`); None: see `default_driver_memory`."""
    app_name: str = "mm2slo audit"

    @classmethod
    def from_config(cls, config: SparkConfig) -> SparkOptions:
        """The options of `audit.spark`."""
        return cls(
            master=config.master,
            conf={name: value.reveal() for name, value in config.conf.items()},
            jars=config.jars,
            ivy_dir=config.ivy_dir,
            driver_memory=config.driver_memory,
        )

    @property
    def local(self) -> bool:
        """Whether driver and executors are one local process."""
        return self.master.partition("[")[0] == "local"


def default_driver_memory() -> str:
    """A quarter of the machine's memory, at least 1 and at most 4 GiB."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{max(_MIN_MEMORY, min(_MAX_MEMORY, total // 4)) // _MIB}m"


def ivy_directory(options: SparkOptions) -> Path:
    """Spark's Ivy cache: from the options, else Spark 4's default."""
    return Path(options.ivy_dir) if options.ivy_dir else Path.home() / ".ivy2.5.2"
