"""The report behind a digest's link shows the same figures."""

import re
from pathlib import Path

import pytest
from digest_samples import texts
from report_service_fixture import sample_source, start_service

from mm2slo_core.quantity_text import share_text, signed_share_text
from mm2slo_report.digest.slo_digest import DigestBuilder
from mm2slo_report.rendering.report_text import percent_text
from mm2slo_report.service_settings import ReportLinks
from mm2slo_store.store import Store

LINK = re.compile(r"<http://localhost(/[^|]+)\|Full report>")


@pytest.mark.parametrize("period", ["3d", "2026-07", "yesterday"])
def test_linked_report_shows_the_figures_of_the_digest(tmp_path: Path, period: str) -> None:
    with Store.open(tmp_path / "results.db") as store:
        service = start_service(store, sample_source())
        digest = DigestBuilder(
            service.service.reporter, period, ReportLinks("http://localhost")
        ).build()
        text = "\n".join(texts(digest.message.blocks))
        found = LINK.search(text)
        assert found is not None
        page = service.client.get(found[1])
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        answer = service.client.get(found[1].replace("format=html", "format=json")).json()
    figures = [
        f"{share_text(each['sli_ratio'])}, objective {percent_text(each['objective_ratio'])}; "
        f"budget {signed_share_text(each['budget']['remaining_ratio'])}"
        for each in answer["entries"]
        if each["sli_ratio"] is not None
    ]
    assert len(figures) == 2
    assert all(each in text for each in figures)
