"""The tables of `store_schema`, with which every new store starts: nothing to migrate from."""

revision = "0001"
down_revision = None
