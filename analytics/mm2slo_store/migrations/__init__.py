"""Migrations of the store, forward only; `opening` runs them."""
