"""`mm2slo dashboards preview`: its files, its exit codes, and what it says of mistakes."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest
from dashed import ROOT
from previewing import Told, vector, words
from recording_server import Answer, RecordingServer, Request
from typer.testing import CliRunner

from mm2slo_cli import chromium
from mm2slo_cli.dashboards import dashboards_app
from mm2slo_core.errors import UserError
from mm2slo_dashboards.preview.asking import QueryRefused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GENERATED = ROOT / "dashboards" / "generated"
FLEET = ("--board", "mm2slo-overview")


def answering(told: Told) -> RecordingServer:
    """Prometheus's API over *told*."""

    def answer(request: Request) -> Answer:
        parts = urlsplit(request.path)
        given = [(name, value) for name, [value] in parse_qs(parts.query).items()]
        try:
            data = told.get(parts.path.removeprefix("/api/v1/"), given)
        except QueryRefused as error:
            refusal = {"status": "error", "errorType": "bad_data", "error": str(error)}
            return Answer(400, json.dumps(refusal))
        return Answer(body=json.dumps({"status": "success", "data": data}))

    return RecordingServer(answer)


@pytest.fixture
def told() -> Told:
    state = vector(({"flow": "us->eu"}, 3))
    return Told({"mm2_flow_state": state}, {"flow": ["eu->us", "us->eu"]})


@pytest.fixture
def server(told: Told) -> Iterator[RecordingServer]:
    with answering(told) as running:
        yield running


def run(server: RecordingServer, out: Path, *arguments: str) -> tuple[int, str]:
    command = ["preview", "--prometheus", server.address, "--out", str(out)]
    chosen = arguments if "--files" in arguments else ("--files", str(GENERATED), *arguments)
    done = CliRunner().invoke(dashboards_app, [*command, *chosen])
    if isinstance(done.exception, UserError):
        raise done.exception
    return done.exit_code, done.output


def test_each_board_becomes_a_page(server: RecordingServer, tmp_path: Path) -> None:
    code, said = run(server, tmp_path / "out")
    assert code == 0
    boards = {path.stem for path in GENERATED.glob("grafana/dashboards/*.json")}
    assert {path.name for path in (tmp_path / "out").iterdir()} == {f"{uid}.html" for uid in boards}
    assert said.split() == [str(tmp_path / "out" / f"{uid}.html") for uid in sorted(boards)]
    assert "stopped" in words((tmp_path / "out" / "mm2slo-overview.html").read_text("utf-8"))


def test_what_is_chosen_is_asked(server: RecordingServer, told: Told, tmp_path: Path) -> None:
    time = ("--from", "2026-12-01T00:00Z", "--to", "2026-12-01T01:00Z")
    code, _ = run(server, tmp_path, *FLEET, "--var", "flow=us->eu", *time, "--light")
    assert code == 0
    page = (tmp_path / "mm2slo-overview.html").read_text("utf-8")
    assert "2026-12-01 00:00:00 to 2026-12-01 01:00:00 UTC" in words(page)
    assert 'data-theme="light"' in page
    queries = [given for path, given in told.asked if path == "query"]
    assert any("flow=~`us->eu`" in each["query"] for each in queries)
    assert {each["time"] for each in queries} == {"1796086800.000"}


def test_a_range_ends_where_it_is_told(server: RecordingServer, told: Told, tmp_path: Path) -> None:
    end = ("--range", "15m", "--to", "2026-12-01T01:00Z", "--scrape-interval", "1s")
    run(server, tmp_path, *FLEET, *end)
    courses = [given for path, given in told.asked if path == "query_range"]
    assert {float(each["start"]) for each in courses if each["step"] == "2.000"} == {1796085900.0}


def test_refused_queries_are_listed_and_make_1(
    server: RecordingServer, told: Told, tmp_path: Path
) -> None:
    told.refuses = "mm2_flow_lag_records"
    code, said = run(server, tmp_path, *FLEET)
    assert code == 1
    assert "Prometheus refused 1 queries:" in said
    wanted = "mm2slo-overview: panel 'Which flows need attention first?', query E: parse error:"
    assert wanted in said
    page = (tmp_path / "mm2slo-overview.html").read_text("utf-8")
    assert "E: parse error: unexpected end of input" in words(page)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--board", "mm2slo-flows"), "there is no such board; did you mean 'mm2slo-flow'"),
        (("--var", "flow"), "'flow' has no value: write it as --var name=value"),
        (("--var", "team=a"), "there is no variable 'team'; there are .*flow"),
        ((*FLEET, "--var", "flow=us->ue"), "no such flow in this time; did you mean"),
        (("--range", "soon"), "--range is 'soon': expected a length as 90s"),
        (("--range", "1h", "--from", "now-1h"), "give one of them"),
        (("--from", "yesterday"), "--from 'yesterday' is not a time"),
        (("--from", "now", "--to", "now-1h"), "ends before it starts"),
        (("--scrape-interval", "fast"), "--scrape-interval is 'fast'"),
        (("--files", "/nowhere"), "there are no dashboards in /nowhere/grafana/dashboards"),
    ],
)
def test_mistakes_are_told(
    server: RecordingServer, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        run(server, tmp_path, *arguments)


def test_an_unknown_transformation_is_named(server: RecordingServer, tmp_path: Path) -> None:
    folder = tmp_path / "generated"
    shutil.copytree(GENERATED, folder)
    changed = folder / "grafana" / "dashboards" / "mm2slo-overview.json"
    changed.write_text(changed.read_text("utf-8").replace('"id": "merge"', '"id": "joinByField"'))
    with pytest.raises(UserError, match=r"mm2slo-overview\.json, panel .*'joinByField'"):
        run(server, tmp_path, "--files", str(folder))


def test_a_prometheus_that_is_none_is_told(tmp_path: Path) -> None:
    with (
        RecordingServer(lambda _: Answer(body='{"hello": 1}')) as other,
        pytest.raises(UserError, match="check the address given by --prometheus"),
    ):
        run(other, tmp_path)
    with pytest.raises(UserError, match="does not answer"):
        run(other, tmp_path)
    with (
        RecordingServer(lambda _: Answer(502, "<html>Bad gateway")) as proxy,
        pytest.raises(UserError, match="refused: 502 <html>Bad gateway"),
    ):
        run(proxy, tmp_path)


def test_pictures_need_chromium(
    server: RecordingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="apt-get install chromium, or leave out --png"):
        run(server, tmp_path / "out", "--png")
    assert not (tmp_path / "out").exists()


@pytest.mark.long
@pytest.mark.skipif(chromium.found() is None, reason="no chromium: run make chromium")
def test_pictures_have_the_size_of_their_page(server: RecordingServer, tmp_path: Path) -> None:
    code, said = run(server, tmp_path, *FLEET, "--png")
    assert code == 0
    picture = tmp_path / "mm2slo-overview.png"
    assert said.split()[-1] == str(picture)
    taken = picture.read_bytes()
    assert taken[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = int.from_bytes(taken[16:20], "big"), int.from_bytes(taken[20:24], "big")
    assert (width, height) == (1440, 1532)
