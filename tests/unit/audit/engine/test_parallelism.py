"""Partitions by the cluster's cores, unless somebody said how many."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from mm2slo_audit.engine.parallelism import few_shuffle_partitions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "spark.sql.shuffle.partitions"


def session(cores: int, told: set[str]) -> tuple[SparkSession, dict[str, object]]:
    """What the function asks of a session: a real one of several cores would start a cluster."""
    held: dict[str, object] = {NAME: "200"}
    found = SimpleNamespace(
        sparkContext=SimpleNamespace(
            defaultParallelism=cores, getConf=lambda: SimpleNamespace(contains=told.__contains__)
        ),
        conf=SimpleNamespace(get=lambda name, _default: held[name], set=held.__setitem__),
    )
    return cast("SparkSession", found), held


def test_eight_for_each_core_and_afterwards_as_before() -> None:
    spark, held = session(3, set())
    with few_shuffle_partitions(spark):
        assert held[NAME] == 24
    assert held[NAME] == "200"


def test_afterwards_as_before_even_when_it_fails() -> None:
    spark, held = session(3, set())
    with pytest.raises(KeyError), few_shuffle_partitions(spark):
        raise KeyError
    assert held[NAME] == "200"


def test_what_the_session_was_told_holds() -> None:
    spark, held = session(3, {NAME})
    with few_shuffle_partitions(spark):
        assert held[NAME] == "200"
