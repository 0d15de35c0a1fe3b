"""Partitions by the cluster's cores, unless somebody said how many."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from mm2slo_audit.engine.parallelism import limit_shuffle_partitions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "spark.sql.shuffle.partitions"


def told(spark: SparkSession, cores: int, names: set[str]) -> SparkSession:
    """The settings of a real session, on a cluster of that many cores."""
    context = SimpleNamespace(
        defaultParallelism=cores, getConf=lambda: SimpleNamespace(contains=names.__contains__)
    )
    return cast("SparkSession", SimpleNamespace(sparkContext=context, conf=spark.conf))


def test_eight_for_each_core_and_afterwards_as_before(spark: SparkSession) -> None:
    before = spark.conf.get(NAME)
    with limit_shuffle_partitions(told(spark, 3, set())):
        assert spark.conf.get(NAME) == "24"
    assert spark.conf.get(NAME) == before != "24"


def test_afterwards_as_before_even_when_it_fails(spark: SparkSession) -> None:
    before = spark.conf.get(NAME)
    with pytest.raises(KeyError), limit_shuffle_partitions(told(spark, 3, set())):
        raise KeyError
    assert spark.conf.get(NAME) == before


def test_what_the_session_was_told_holds(spark: SparkSession) -> None:
    before = spark.conf.get(NAME)
    with limit_shuffle_partitions(told(spark, 3, {NAME})):
        assert spark.conf.get(NAME) == before
