"""Ids of objectives: their form, their length, and that they differ."""

import re

from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.objective import shorten_id, slo_id
from mm2slo_core.topology import Flow

NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def test_slo_id_of_long_aliases_is_a_unique_host_name_label() -> None:
    long = Flow("a" * 40, "b" * 40)
    ids = {slo_id(long, SliKey(sli)) for sli in Sli}
    assert len(ids) == len(Sli)
    assert all(NAME.fullmatch(each) for each in ids)
    assert shorten_id("x" * 63) == "x" * 63
    assert len(shorten_id("x" * 64)) == 63


def test_slo_id_includes_the_tier_if_there_are_several() -> None:
    assert slo_id(Flow("us", "eu"), SliKey(Sli.LATENCY, "0.5s")) == "us-to-eu-latency-0-5s"
    assert slo_id(Flow("us", "eu"), SliKey(Sli.AVAILABILITY)) == "us-to-eu-availability"
