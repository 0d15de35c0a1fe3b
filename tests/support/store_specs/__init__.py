"""Audit results to put into a store, what it must do with them on every back-end, PostgreSQL."""

from store_specs.back_end import BackEnd, Clock, SqliteBackEnd
from store_specs.results import (
    AP_EU,
    ORDERS,
    US_EU,
    header,
    judged,
    orders_outcome,
    run_of,
    unjudged,
)

__all__ = [
    "AP_EU",
    "ORDERS",
    "US_EU",
    "BackEnd",
    "Clock",
    "SqliteBackEnd",
    "header",
    "judged",
    "orders_outcome",
    "run_of",
    "unjudged",
]
