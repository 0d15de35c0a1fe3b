"""A shipper in this process, with short pauses."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mm2slo_logship.event_delivery import ShipMetrics
from mm2slo_logship.hec_client import Connection
from mm2slo_logship.log_files import Source
from mm2slo_logship.shipper import Shipper, ShipSettings


def make_settings(folder: Path, urls: list[str], *sources: Source, **more: Any) -> ShipSettings:
    token = folder / "token"
    if not token.exists():
        token.write_text("token-1")
        token.chmod(0o600)
    return ShipSettings(
        endpoints=tuple(urls),
        token_file=token,
        sources=sources,
        state_dir=folder / "state",
        connection=Connection(),
        version="0.1",
        redactions={},
        **{"linger": 0.05, **more},
    )


@contextmanager
def running_shipper(settings: ShipSettings) -> Iterator[ShipMetrics]:
    """Ship until the end of the block; a failure of a lane is raised there."""
    metrics = ShipMetrics()
    shipper = Shipper(settings, metrics)
    shipper.start()
    try:
        yield metrics
        shipper.wait(0.0)
    finally:
        shipper.stop()


def value(metrics: ShipMetrics, name: str, **labels: str) -> float:
    """The value of a series; 0 if it is absent."""
    return metrics.registry.get_sample_value(f"mm2_logship_{name}", labels) or 0.0
