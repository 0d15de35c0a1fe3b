"""Why one value is refused: the text that a validator hands to the report."""

from __future__ import annotations


class Refusal(ValueError):  # noqa: N818 - it is a message to the report, not an error by itself
    """A value that cannot be accepted: what is wrong with it, what was expected, what to do.

    *what* continues the value, as in `'soon'` + `is not a duration`. It never holds the value:
    the report decides whether that may be shown, unless *hides_value* forbids it.
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
