"""Errors that a user can fix.

UserError                 the request cannot be fulfilled; the message says what to change
    ├── ConfigError           the configuration has problems; the message lists all (`config`)
    └── MissingExtraError     a package that the command needs is not installed

The class decides the exit code; the message is printed without a traceback.
"""


class UserError(Exception):
    """The request cannot be fulfilled; the message says what to change."""

    exit_code = 2


class MissingExtraError(UserError):
    """A command needs a package of an extra that is not installed."""

    def __init__(self, *, module: str, extra: str | None) -> None:
        """*extra* is None for a package that every installation has."""
        what = f"'.[{extra}]'" if extra else "--force-reinstall ."
        super().__init__(
            f"this command needs {module}, which is not installed; run in a checkout of mm2slo, "
            f"or with the path of its wheel in place of the dot: pip install {what}"
        )
        self.module = module
