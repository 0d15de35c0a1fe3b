"""A program that logs numbered lines and rotates its file by rename."""

import json
import random
import threading
from pathlib import Path
from typing import Self


class LogWriter:
    """Writes to `mm2.log` in *folder* until the end of the block; the lines have numbers from 0.

    It pauses at `limit` lines, so that the reader is never far behind.
    """

    def __init__(self, folder: Path, *, seed: int, rotate_after: int = 4_000) -> None:
        self._path = folder / "mm2.log"
        self._random = random.Random(seed)
        self._rotate_after = rotate_after
        self._rotations = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.lines = 0
        self.limit = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        in_file = 0
        while not self._stop.wait(0.005):
            count = min(self._random.randrange(1, 30), self.limit - self.lines)
            if count <= 0:
                continue
            with self._path.open("a") as log:
                for number in range(self.lines, self.lines + count):
                    text = "x" * self._random.randrange(300)
                    log.write(json.dumps({"n": number, "message": text}) + "\n")
            self.lines += count
            in_file += count
            if in_file >= self._rotate_after:
                in_file = 0
                self._rotations += 1
                self._path.rename(self._path.with_name(f"mm2.log.{self._rotations:04d}"))
