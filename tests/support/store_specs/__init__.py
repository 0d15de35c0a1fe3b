"""Contract tests of the store for every back-end, sample data, and a PostgreSQL server."""

from store_specs.back_end import BackEnd, Clock, SqliteBackEnd
from store_specs.sample_results import (
    AP_EU,
    ORDERS,
    US_EU,
    header,
    judged,
    orders_outcome,
    run_of,
    unjudged,
)
from store_specs.stored_rows import stored_directories, stored_outcome

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
    "stored_directories",
    "stored_outcome",
    "unjudged",
]
