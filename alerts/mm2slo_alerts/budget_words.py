"""How alerts speak of what is left of an error budget, which is unclamped and may be below zero."""

from __future__ import annotations

_VALUE = ". | first | value"


def budget_words(left: str, arguments: str, *, of: str = "") -> str:
    """A template that tells what the query *left* answers.

    *left* is a format of Go's printf for *arguments*; *of* names the indicator, itself a template
    that sees the query's result. A budget below zero is told by what was spent: "-2627 % left"
    takes a second reading.
    """
    above = f"{{{{ {_VALUE} | humanizePercentage }}}} of the error budget{of} is left"
    below = _with(f"1 - ({left})", arguments, spent_words(of=of))
    return _with(
        left, arguments, f"{{{{ if lt ({_VALUE}) 0.0 }}}}{below}{{{{ else }}}}{above}{{{{ end }}}}"
    )


def spent_words(value: str = _VALUE, *, of: str = "") -> str:
    """What *value* says, the spent share of a budget."""
    return (
        f'bad events are {{{{ printf "%.2f" ({value}) }}}} times what the error budget{of} allows'
    )


def _with(query: str, arguments: str, then: str) -> str:
    return (
        f'{{{{ with printf "{query}" {arguments} | query }}}}{then}{{{{ else }}}}n/a{{{{ end }}}}'
    )
