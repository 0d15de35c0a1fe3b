"""`mm2slo dashboards preview`: the boards as static pages, filled by a live Prometheus."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlencode

import typer
from rich.console import Console

from mm2slo_cli import chromium
from mm2slo_cli.generated_files import write
from mm2slo_cli.moments import moment
from mm2slo_cli.web_calls import Refused, Server
from mm2slo_core.config.nearest import nearest
from mm2slo_core.errors import UserError
from mm2slo_dashboards.files import DASHBOARDS
from mm2slo_dashboards.preview import times
from mm2slo_dashboards.preview.asking import QueryRefused
from mm2slo_dashboards.preview.reading.dashboard import dashboards
from mm2slo_dashboards.preview.rendering import rendered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_dashboards.preview.reading.dashboard import Dashboard
    from mm2slo_dashboards.preview.times import Span

_FILES: Final = Path("dashboards/generated")


class Api:
    """Prometheus's HTTP API, over our one way to call a server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def get(self, path: str, parameters: Sequence[tuple[str, str]]) -> Any:
        """The `data` of the answer; see `mm2slo_dashboards.preview.asking.Prometheus`."""
        try:
            answer = self._server.call("GET", f"/api/v1/{path}?{urlencode(parameters)}")
        except Refused as error:
            reason = _reason(error.said)
            if reason is None:
                raise
            raise QueryRefused(reason) from None
        return answer.get("data") if isinstance(answer, dict) else None


def preview(  # noqa: PLR0913 - each is an option of the command
    prometheus: Annotated[
        str, typer.Option(metavar="URL", help="The Prometheus to ask, as http://127.0.0.1:9090.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the pages.")],
    *,
    board: Annotated[
        list[str] | None,
        typer.Option(metavar="UID", help="This board only; repeatable. [default: all]"),
    ] = None,
    var: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="What is chosen, as flow='us->eu'; repeatable."),
    ] = None,
    length: Annotated[
        str | None,
        typer.Option("--range", metavar="LENGTH", help="How much is shown, as 6h or 7d."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="From when on, as now-6h or ISO 8601."),
    ] = None,
    until: Annotated[str, typer.Option("--to", metavar="TIME", help="Up to when.")] = "now",
    scrape: Annotated[
        str,
        typer.Option("--scrape-interval", metavar="LENGTH", help="How often Prometheus scrapes."),
    ] = "15s",
    files: Annotated[
        Path, typer.Option("--files", metavar="DIR", help="Folder of the generated files.")
    ] = _FILES,
    light: Annotated[bool, typer.Option("--light", help="The light theme.")] = False,
    png: Annotated[bool, typer.Option("--png", help="Pictures as well, by Chromium.")] = False,
) -> None:
    """Draw the boards of the generated files with what Prometheus knows, as static pages."""
    console = Console(highlight=False, soft_wrap=True)
    server = Api(Server.of("Prometheus", "--prometheus", prometheus))
    boards = _chosen(dashboards(files / DASHBOARDS), board or ())
    given = _given(var or (), boards)
    every = times.length("--scrape-interval", scrape)
    now = time.time()
    spans = {each.uid: _span(each, length, since, until, now) for each in boards}
    if png:
        chromium.demand()
    titles = {each.uid: each.title for each in boards}
    refused: list[str] = []
    for each in boards:
        drawn = rendered(
            each,
            server,
            given=given,
            span=spans[each.uid],
            scrape=every,
            others=titles,
            dark=not light,
        )
        page = out / f"{drawn.uid}.html"
        write(page, drawn.html)
        console.print(f"{page}", markup=False)
        if png:
            image = page.with_suffix(".png")
            chromium.picture(page, image, drawn.width, drawn.height)
            console.print(f"{image}", markup=False)
        refused += drawn.refused
    if refused:
        console.print(f"Prometheus refused {len(refused)} queries:", markup=False)
        for problem in refused:
            console.print(f"  {problem}", markup=False)
        raise typer.Exit(1)


def _chosen(known: Sequence[Dashboard], uids: Sequence[str]) -> Sequence[Dashboard]:
    by_uid = {each.uid: each for each in known}
    for uid in uids:
        if uid not in by_uid:
            close = nearest(uid, by_uid)
            hint = f"did you mean {close!r}?" if close else f"there are {', '.join(by_uid)}"
            raise UserError(f"--board {uid}: there is no such board; {hint}")
    return [by_uid[uid] for uid in dict.fromkeys(uids)] or known


def _given(texts: Sequence[str], boards: Sequence[Dashboard]) -> Mapping[str, Sequence[str]]:
    """Values by variable; a variable that is given several times has several."""
    names = {each.name: each for one in boards for each in one.variables}
    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UserError(f"--var {text!r} has no value: write it as --var name=value")
        if name not in names:
            there = f"there are {', '.join(names)}" if names else "these boards have none"
            raise UserError(f"--var {text!r}: there is no variable {name!r}; {there}")
        found.setdefault(name, []).append(value)
    return found


def _span(board: Dashboard, length: str | None, since: str | None, until: str, now: float) -> Span:
    """What is asked for, else what the board usually shows."""
    if length is not None and since is not None:
        raise UserError("--range and --from say the same twice: give one of them")
    end = _time("--to", until, now)
    lately = times.relative(until, now) is not None
    if length is not None:
        return times.Span(end - times.length("--range", length), end, lately)
    if since is not None:
        start = _time("--from", since, now)
        return times.Span(start, end, lately and times.relative(since, now) is not None)
    return times.Span(_time("the board's time", board.since, end), end, lately)


def _time(option: str, text: str, now: float) -> float:
    found = times.relative(text, now)
    return moment(option, text, round(now * 1000)) / 1000 if found is None else found


def _reason(said: str) -> str | None:
    """Why Prometheus does not take a query; None for what is no word of it, as of a proxy."""
    try:
        return str(json.loads(said)["error"])
    except (ValueError, KeyError, TypeError):
        return None
