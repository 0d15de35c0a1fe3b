"""`report.digests`, reports that are posted to Slack when they are due."""

from typing import Annotated, Final

from pydantic import AfterValidator, Field

from mm2slo_core.config.fields import Section
from mm2slo_core.config.names import FilePath, Name
from mm2slo_core.config.refusal import Refusal
from mm2slo_core.objectives.figures import parse_shorthand
from mm2slo_core.reporting.finished import ACCEPTED as FINISHED
from mm2slo_core.reporting.finished import is_finished
from mm2slo_core.reporting.schedule import ACCEPTED as SCHEDULES
from mm2slo_core.reporting.schedule import Schedule

_DEFAULT: Final = "mon 09:00"


def _schedule(value: str) -> str:
    try:
        return str(Schedule.parse(value))
    except ValueError:
        raise Refusal("is no schedule", expected=SCHEDULES) from None


def _period(value: str) -> str:
    # A date would be the same period each time.
    if parse_shorthand(value) is None and not is_finished(value):
        raise Refusal(
            "is no period that moves with the time", expected=f"a length as in 7d, or {FINISHED}"
        )
    return value


class DigestConfig(Section):
    """A report that is posted to Slack when it is due, once per period."""

    channel: Name = Field(
        description="Channel of `alerting.slack`; with `token_file` the id of one in Slack."
    )
    schedule: Annotated[str, AfterValidator(_schedule)] = Field(
        default=_DEFAULT,
        description="When, in `report.zone`: `mon 09:00`, `1 09:00` of each month, `daily 09:00`.",
    )
    period: Annotated[str, AfterValidator(_period)] = Field(
        default="7d",
        description="Over which time: a length as in `7d`, or `yesterday`, `last-week`, "
        "`last-month`, `last-quarter`, `last-year`.",
    )
    token_file: FilePath | None = Field(
        default=None, description="File with a bot's token; null: the channel's webhook."
    )
