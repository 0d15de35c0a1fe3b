"""A network of its own for processes: loopback, and nothing else."""

import subprocess
from typing import Self


class PrivateNetwork:
    """A network namespace; a context manager. Needs root."""

    def __enter__(self) -> Self:
        command = ["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec cat"]
        self._holder = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "up\n"
        return self

    def __exit__(self, *_exception: object) -> None:
        self._holder.communicate()

    @property
    def prefix(self) -> tuple[str, ...]:
        """What starts a command in this network."""
        return ("nsenter", f"--net=/proc/{self._holder.pid}/ns/net", "--")
