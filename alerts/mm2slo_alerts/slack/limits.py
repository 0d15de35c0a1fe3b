"""How long the parts of a message may be, in characters as people read them.

Slack folds an attachment's text away behind "Show more" from 700 characters or 5 line breaks on,
and cuts a footer at 300. A message about one alert stays below both; a list of several alerts
comes after what matters, so folding hides the list alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Longest parts; a longer text is cut and ends in an ellipsis."""

    subject: int = 60
    """Flow and indicator of an objective."""
    summary: int = 130
    """The title of any other alert."""
    impact: int = 150
    budget: int = 120
    owner: int = 40
    first_step: int = 260
    first_look: int = 170
    """The first step of an objective's alert, whose text starts with the summary."""
    listed: int = 100
    """One line of the list of alerts."""
    alerts: int = 5
    """Lines of that list."""
    footer: int = 300
    folded: int = 700
    """From here on Slack folds the text."""
    folded_breaks: int = 5


LIMITS: Final = Limits()
