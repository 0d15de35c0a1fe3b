"""Templates for an error budget, which is negative when overspent."""

from __future__ import annotations

_VALUE = ". | first | value"


def budget_text(left: str, arguments: str, *, of: str = "") -> str:
    """Return a template that shows the remaining share that the query *left* returns.

    *left* is a format of Go's printf for *arguments*; *of* names the indicator, itself a template
    that sees the query's result.
    """
    remaining = f"{{{{ {_VALUE} | humanizePercentage }}}} of the {of}error budget is left"
    overspent = of + overspent_text(_VALUE, "-100 * %f")
    return (
        f'{{{{ with printf "{left}" {arguments} | query }}}}'
        f"{{{{ if lt ({_VALUE}) 0.0 }}}}{overspent}{{{{ else }}}}{remaining}{{{{ end }}}}"
        "{{ else }}n/a{{ end }}"
    )


def overspent_text(value: str, percent: str) -> str:
    """Return a template for an overspent budget; *percent* is the formula for *value*."""
    return f'error budget overspent by {{{{ printf "%.0f" ({_calculated(percent, value)}) }}}} %'


def exhausted_in(value: str = _VALUE) -> str:
    """Return a template for the time *value* (seconds) until a budget is exhausted."""
    units = ((7_200, 60, "min"), (172_800, 3_600, "h"), (None, 86_400, "days"))
    parts = []
    for number, (below, seconds, unit) in enumerate(units):
        if below is not None:
            parts.append(f"{{{{ {'else ' if number else ''}if lt ({value}) {below:.1f} }}}}")
        else:
            parts.append("{{ else }}")
        amount = _calculated(f"%f / {seconds}", value)
        parts.append(f'{{{{ printf "%.0f" ({amount}) }}}} {unit}')
    return f"exhausted in about {''.join(parts)}{{{{ end }}}} at this rate"


def _calculated(formula: str, value: str) -> str:
    """Prometheus's templates have no arithmetic of their own: a query of a number calculates."""
    return f'printf "{formula}" ({value}) | query | first | value'
