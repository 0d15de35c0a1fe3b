"""The results store: audits, exclusions, SLI history and digest claims, in SQLite or PostgreSQL."""
