"""Runs a command that is killed when its parent exits for any reason.

Run as a file: `python process_guard.py PARENT_PID COMMAND...`; it execs the command. Linux sends
the signal when the *thread* that started this process ends, so that thread must live as long as
the program. On other systems the command runs unguarded.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h; survives exec of a program without set-uid


def main() -> None:
    """Request the signal, then exec the command."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    # The parent may have exited before the request.
    if os.getppid() != parent:
        sys.exit("the parent has already exited")
    os.execvp(command[0], command)  # noqa: S606 - exec is the purpose


if __name__ == "__main__":
    main()
