"""Maximum lengths of the parts of a message, in displayed characters.

Slack folds an attachment's text behind "Show more" from 700 characters or 5 line breaks on, and
cuts a footer at 300. A message about one alert stays below both; a list of several alerts comes
last, so that folding hides only the list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Longer texts are cut and end in an ellipsis."""

    subject: int = 60
    """Flow and indicator of an objective."""
    summary: int = 130
    """The title of any other alert."""
    impact: int = 150
    owner: int = 40
    action: int = 260
    short_action: int = 170
    """The action of an objective's alert, whose text starts with the summary."""
    listed: int = 100
    """One line of the list of alerts."""
    alerts: int = 5
    """Lines of that list."""
    footer: int = 300
    folded: int = 700
    """Slack folds text of this length."""
    folded_breaks: int = 5


LIMITS: Final = Limits()
