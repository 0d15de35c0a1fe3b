"""Lands topics of a lab in a separate process, since Spark keeps one JVM per process.

`python -m landed_topics CONFIG DIRECTORY SAMPLE START END FLOW TOPIC...` prints the result as JSON.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from mm2slo_core.audit.audit_scope import Window

SUPPORT = Path(__file__).parents[1]


def land_in_child(
    config: str, directory: Path, window: Window, flow: str, *topics: str, sample: float = 1.0
) -> dict[str, Any]:
    """The output of `__main__`. Raises AssertionError with its errors."""
    file = directory / "mm2slo.yaml"
    file.write_text(config, encoding="utf-8")
    command = [
        sys.executable, "-m", "landed_topics", str(file), str(directory / "landed"), str(sample),
        str(window.start), str(window.end), flow, *topics,
    ]  # fmt: skip
    answer = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SUPPORT)},
    )
    assert answer.returncode == 0, answer.stderr
    found: dict[str, Any] = json.loads(answer.stdout)
    return found
