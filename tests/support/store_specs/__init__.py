"""Contract tests of the store for every back-end, sample data, and a PostgreSQL server."""
