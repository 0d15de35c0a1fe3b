"""Prepares the shutdown of the demo."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from mm2slo_cli.signals import SignalInterrupts


def prepare_shutdown(interrupts: SignalInterrupts, progress: Console) -> None:
    """Ignore further signals and print that the demo is shutting down."""
    interrupts.disable()
    if progress.is_terminal:
        progress.print("shutting down ...", style="dim")
