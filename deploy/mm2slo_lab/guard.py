"""Runs a command that ends when its parent ends, however the parent ends.

Run as a file: `python guard.py PARENT_PID COMMAND...`; it replaces itself by the command. Linux
delivers the signal when the *thread* that started this process ends, so it must be started by a
thread that lives as long as the program. Elsewhere than on Linux it runs the command unguarded.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h; survives exec of a program without set-uid


def main() -> None:
    """Ask for the signal, then become the command."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    # The parent may have ended before the request above was made.
    if os.getppid() != parent:
        sys.exit("the parent ended first")
    os.execvp(command[0], command)  # noqa: S606 - becoming the command is the purpose


if __name__ == "__main__":
    main()
