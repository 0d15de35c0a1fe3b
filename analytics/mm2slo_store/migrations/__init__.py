"""Migrations of the store, forward only; `schema_upgrade` runs them."""
