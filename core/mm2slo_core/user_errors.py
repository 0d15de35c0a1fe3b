"""The errors that a user can mend.

    UserError            what the user asked for cannot be done; one line says what to change
    ├── ConfigError   the configuration has problems; a report names them all (`config`)
    └── MissingExtraError     a package that this command needs is not installed

The class decides the exit code; the text is printed without a traceback.
"""

from __future__ import annotations


class UserError(Exception):
    """What the user asked for cannot be done as it was asked; the text says what to change."""

    exit_code = 2


class MissingExtraError(UserError):
    """A command needs a package of an optional extra that is not installed."""

    def __init__(self, *, module: str, install: str) -> None:
        super().__init__(f"this command needs {module}, which is not installed; run: {install}")
        self.module = module
        self.install = install
