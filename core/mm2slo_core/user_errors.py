"""Errors that a user can fix.

    UserError                 the request cannot be fulfilled; the message says what to change
    ├── ConfigError           the configuration has problems; the message lists all (`config`)
    └── MissingExtraError     a package that the command needs is not installed

The class decides the exit code; the message is printed without a traceback.
"""

from __future__ import annotations


class UserError(Exception):
    """The request cannot be fulfilled; the message says what to change."""

    exit_code = 2


class MissingExtraError(UserError):
    """A command needs a package of an extra that is not installed."""

    def __init__(self, *, module: str, install: str) -> None:
        super().__init__(f"this command needs {module}, which is not installed; run: {install}")
        self.module = module
        self.install = install
