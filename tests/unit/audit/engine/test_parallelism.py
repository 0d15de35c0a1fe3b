"""Partitions by the cluster's cores, unless somebody said how many."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from audit_spark import spark

from mm2slo_audit.engine.parallelism import few_shuffle_partitions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "spark.sql.shuffle.partitions"


def told(session: SparkSession, cores: int, names: set[str]) -> SparkSession:
    """The settings of a real session, on a cluster of that many cores."""
    context = SimpleNamespace(
        defaultParallelism=cores, getConf=lambda: SimpleNamespace(contains=names.__contains__)
    )
    return cast("SparkSession", SimpleNamespace(sparkContext=context, conf=session.conf))


def test_eight_for_each_core_and_afterwards_as_before() -> None:
    session = spark()
    before = session.conf.get(NAME)
    with few_shuffle_partitions(told(session, 3, set())):
        assert session.conf.get(NAME) == "24"
    assert session.conf.get(NAME) == before != "24"


def test_afterwards_as_before_even_when_it_fails() -> None:
    session = spark()
    before = session.conf.get(NAME)
    with pytest.raises(KeyError), few_shuffle_partitions(told(session, 3, set())):
        raise KeyError
    assert session.conf.get(NAME) == before


def test_what_the_session_was_told_holds() -> None:
    session = spark()
    before = session.conf.get(NAME)
    with few_shuffle_partitions(told(session, 3, {NAME})):
        assert session.conf.get(NAME) == before
