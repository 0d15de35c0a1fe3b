"""How everything ends, said where a person watches."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from mm2slo_cli.ending import Ending


def leave(ending: Ending, progress: Console) -> None:
    """Let a further signal change nothing from here on."""
    ending.quietly()
    if progress.is_terminal:
        progress.print("ending everything ...", style="dim")
