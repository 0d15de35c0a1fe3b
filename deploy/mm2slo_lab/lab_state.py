"""The state file of a persistent lab."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mm2slo_core.user_folders import state_folder
from mm2slo_lab.lab_errors import LabError
from mm2slo_lab.lab_topology import LabTopology
from mm2slo_lab.managed_process import ProcessHandle

if TYPE_CHECKING:
    from collections.abc import Mapping

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class LabState:
    """Folder, topology, ports by listener, and processes by name."""

    root: Path
    topology: LabTopology
    ports: Mapping[str, int]
    handles: Mapping[str, ProcessHandle]

    def render(self) -> str:
        """Render the state file."""
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
        """Parse a state file. Raises LabError for another format."""
        document: dict[str, Any] = json.loads(text)
        if document.get("format") != _FORMAT:
            raise LabError(
                f"the lab's state has format {document.get('format')!r}, expected {_FORMAT}:"
                " stop that lab with the mm2slo version that started it"
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
    """Return the state folder of the persistent lab: `$XDG_STATE_HOME/mm2slo/lab`."""
    return state_folder() / "lab"


def save(state: LabState, file: Path) -> None:
    """Replace *file* atomically."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.write_text(state.render(), encoding="utf-8")
    fresh.replace(file)
