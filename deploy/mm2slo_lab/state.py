"""A lab that goes on after the command that started it: what the next command must know."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mm2slo_core.user_folders import state_folder
from mm2slo_lab.errors import LabError
from mm2slo_lab.process import ProcessHandle
from mm2slo_lab.topology import LabTopology

if TYPE_CHECKING:
    from collections.abc import Mapping

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class LabState:
    """Where a lab is, what it consists of, its ports by listener and its processes by name."""

    root: Path
    topology: LabTopology
    ports: Mapping[str, int]
    handles: Mapping[str, ProcessHandle]

    def render(self) -> str:
        """The state file's text."""
        document = {
            "format": _FORMAT,
            "root": str(self.root),
            "topology": self.topology.to_json(),
            "ports": dict(self.ports),
            "processes": {name: asdict(handle) for name, handle in self.handles.items()},
        }
        return json.dumps(document, indent=2) + "\n"

    @classmethod
    def parse(cls, text: str) -> LabState:
        """Read a state file's text. Raises LabError for another format."""
        document: dict[str, Any] = json.loads(text)
        if document.get("format") != _FORMAT:
            raise LabError(
                f"the lab's state has format {document.get('format')!r}, this version reads"
                f" {_FORMAT}: end that lab with the mm2slo that started it"
            )
        return cls(
            root=Path(document["root"]),
            topology=LabTopology.from_json(document["topology"]),
            ports=document["ports"],
            handles={
                name: ProcessHandle(**handle) for name, handle in document["processes"].items()
            },
        )


def state_directory() -> Path:
    """Where this user's persisted lab lives: `$XDG_STATE_HOME/mm2slo/lab`."""
    return state_folder() / "lab"


def save(state: LabState, file: Path) -> None:
    """Replace *file* at once: a reader sees the old state or the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.write_text(state.render(), encoding="utf-8")
    fresh.replace(file)
