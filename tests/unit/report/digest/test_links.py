"""The link of a digest leads to the same figures, as the service gives them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from digests import texts
from serving import a_source, served

from mm2slo_core.reporting.words import share, signed_share
from mm2slo_report.digest.links import Links
from mm2slo_report.digest.sending import Wording
from mm2slo_report.rendering.figures import percent_text
from mm2slo_store import Store

if TYPE_CHECKING:
    from pathlib import Path

LINK = re.compile(r"<http://localhost(/[^|]+)\|Full report>")


@pytest.mark.parametrize("period", ["3d", "2026-07", "yesterday"])
def test_the_report_behind_the_link_has_the_figures_of_the_digest(
    tmp_path: Path, period: str
) -> None:
    with Store.open(tmp_path / "results.db") as store:
        service = served(store, a_source())
        worded = Wording(service.service.reporter, period, Links("http://localhost")).worded()
        said = "\n".join(texts(worded.message.blocks))
        found = LINK.search(said)
        assert found is not None
        page = service.client.get(found[1])
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        answer = service.client.get(found[1].replace("format=html", "format=json")).json()
    figures = [
        f"{share(each['sli_value'])}, promised {percent_text(each['objective'])}; "
        f"budget {signed_share(each['budget']['remaining'])}"
        for each in answer["entries"]
        if each["sli_value"] is not None
    ]
    assert len(figures) == 2
    assert all(each in said for each in figures)
