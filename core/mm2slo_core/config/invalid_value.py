"""`InvalidValueError`, raised by validators of configuration values."""

from __future__ import annotations


class InvalidValueError(ValueError):
    """An invalid value: what is wrong, what was expected, what to do.

    *what* follows the value, as in `'soon'` + `is not a duration`, and must not contain it: the
    report decides whether to show the value. *hides_value* forbids it.
    """

    def __init__(
        self,
        what: str,
        *,
        expected: str,
        next_step: str | None = None,
        hides_value: bool = False,
    ) -> None:
        super().__init__(f"{what}; expected {expected}")
        self.what = what
        self.expected = expected
        self.next_step = next_step
        self.hides_value = hides_value
