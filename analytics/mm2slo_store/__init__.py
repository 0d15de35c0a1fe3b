"""The results store: audit runs, their figures and evidence, in SQLite or PostgreSQL."""
