"""All tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    _create_audit_tables()
    _create_exclusions()
    _create_sli_history()
    _create_digests()


def _create_audit_tables() -> None:
    op.create_table(
        "audit_completions",
        sa.Column("flow", sa.String, nullable=False),
        sa.Column("target_topic", sa.String, nullable=False),
        sa.Column("start_at", sa.BigInteger, nullable=False),
        sa.Column("up_to", sa.BigInteger, nullable=False),
        sa.Column("run_id", sa.String, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("flow", "target_topic", name="pk_audit_completions"),
    )
    op.create_table(
        "audit_leases",
        sa.Column("target_cluster", sa.String, nullable=False),
        sa.Column("target_topic", sa.String, nullable=False),
        sa.Column("holder", sa.String, nullable=False),
        sa.Column("acquired_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("target_cluster", "target_topic", name="pk_audit_leases"),
    )
    op.create_table(
        "audit_runs",
        sa.Column("id", sa.String, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("flows", sa.JSON, nullable=False),
        sa.Column("window_start", sa.BigInteger, nullable=False),
        sa.Column("window_end", sa.BigInteger, nullable=False),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("finished_at", sa.BigInteger),
        sa.Column("sample_rate", sa.Double, nullable=False),
        sa.Column("sample_by", sa.String, nullable=False),
        sa.Column("salt", sa.BigInteger, nullable=False),
        sa.Column("config_hash", sa.String, nullable=False),
        sa.Column("versions", sa.JSON, nullable=False),
        sa.Column("exit_code", sa.Integer),
        sa.Column("verdict_line", sa.String),
        sa.Column("complete_up_to", sa.BigInteger),
        sa.Column("bytes_read", sa.BigInteger),
        sa.Column("superseded_units", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_runs"),
    )
    op.create_index("ix_audit_runs_started_at", "audit_runs", ["started_at"])
    op.create_table(
        "audit_units",
        sa.Column("run_id", sa.String, nullable=False),
        sa.Column("unit", sa.Integer, nullable=False),
        sa.Column("target_cluster", sa.String, nullable=False),
        sa.Column("target_topic", sa.String, nullable=False),
        sa.Column("flow_set", sa.String, nullable=False),
        sa.Column("window_start", sa.BigInteger, nullable=False),
        sa.Column("window_end", sa.BigInteger, nullable=False),
        sa.Column("judged", sa.Boolean, nullable=False),
        sa.Column("reason", sa.String),
        sa.Column("detail", sa.String),
        sa.Column("comparison", sa.String, nullable=False),
        sa.Column("target_time", sa.String, nullable=False),
        sa.Column("keyed", sa.Boolean, nullable=False),
        sa.Column("counts", sa.JSON, nullable=False),
        sa.Column("copied_again", sa.BigInteger, nullable=False),
        sa.Column("source_bytes", sa.BigInteger, nullable=False),
        sa.Column("without_bracket", sa.BigInteger, nullable=False),
        sa.Column("end_to_end", sa.JSON, nullable=False),
        sa.Column("transfer", sa.JSON, nullable=False),
        sa.Column("keys", sa.BigInteger, nullable=False),
        sa.Column("keys_split", sa.BigInteger, nullable=False),
        sa.Column("keys_disordered", sa.BigInteger, nullable=False),
        sa.Column("records_moved", sa.BigInteger, nullable=False),
        sa.Column("broken_keys", sa.JSON, nullable=False),
        sa.Column("oldest_open", sa.BigInteger),
        sa.Column("order_judged", sa.Boolean, nullable=False),
        sa.Column("bounds", sa.JSON, nullable=False),
        sa.Column("scope", sa.JSON, nullable=False),
        sa.Column("key_cells", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "unit", name="pk_audit_units"),
        sa.ForeignKeyConstraint(["run_id"], ["audit_runs.id"], name="fk_audit_units_run"),
        sa.UniqueConstraint(
            "target_cluster",
            "target_topic",
            "flow_set",
            "window_start",
            "window_end",
            "judged",
            name="uq_audit_units_key",
        ),
    )
    op.create_table(
        "audit_directories",
        sa.Column("run_id", sa.String, nullable=False),
        sa.Column("unit", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("path", sa.String, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "unit", "number", name="pk_audit_directories"),
        sa.ForeignKeyConstraint(
            ["run_id", "unit"],
            ["audit_units.run_id", "audit_units.unit"],
            name="fk_audit_directories_unit",
        ),
    )
    op.create_index("ix_audit_directories_path", "audit_directories", ["path"])
    op.create_table(
        "audit_evidence",
        sa.Column("run_id", sa.String, nullable=False),
        sa.Column("unit", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("verdict", sa.String, nullable=False),
        sa.Column("side", sa.String, nullable=False),
        sa.Column("flow", sa.Integer, nullable=False),
        sa.Column("partition", sa.Integer, nullable=False),
        sa.Column("record_offset", sa.BigInteger, nullable=False),
        sa.Column("record_timestamp", sa.BigInteger, nullable=False),
        sa.Column("fingerprint", sa.BigInteger, nullable=False),
        sa.Column("key_hash", sa.BigInteger),
        sa.Column("other_partition", sa.Integer),
        sa.Column("other_offset", sa.BigInteger),
        sa.Column("block", sa.BigInteger),
        sa.PrimaryKeyConstraint("run_id", "unit", "number", name="pk_audit_evidence"),
        sa.ForeignKeyConstraint(
            ["run_id", "unit"],
            ["audit_units.run_id", "audit_units.unit"],
            name="fk_audit_evidence_unit",
        ),
    )
    op.create_table(
        "audit_partitions",
        sa.Column("run_id", sa.String, nullable=False),
        sa.Column("unit", sa.Integer, nullable=False),
        sa.Column("flow", sa.Integer, nullable=False),
        sa.Column("partition", sa.Integer, nullable=False),
        sa.Column("counts", sa.JSON, nullable=False),
        sa.Column("source_bytes", sa.BigInteger, nullable=False),
        sa.Column("without_bracket", sa.BigInteger, nullable=False),
        sa.Column("end_to_end", sa.JSON, nullable=False),
        sa.Column("transfer", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "unit", "flow", "partition", name="pk_audit_partitions"),
        sa.ForeignKeyConstraint(
            ["run_id", "unit"],
            ["audit_units.run_id", "audit_units.unit"],
            name="fk_audit_partitions_unit",
        ),
    )
    op.create_table(
        "audit_replays",
        sa.Column("run_id", sa.String, nullable=False),
        sa.Column("unit", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("partition", sa.Integer, nullable=False),
        sa.Column("start_offset", sa.BigInteger, nullable=False),
        sa.Column("end_offset", sa.BigInteger, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "unit", "number", name="pk_audit_replays"),
        sa.ForeignKeyConstraint(
            ["run_id", "unit"],
            ["audit_units.run_id", "audit_units.unit"],
            name="fk_audit_replays_unit",
        ),
    )
    op.create_table(
        "audit_unit_flows",
        sa.Column("run_id", sa.String, nullable=False),
        sa.Column("unit", sa.Integer, nullable=False),
        sa.Column("flow", sa.Integer, nullable=False),
        sa.Column("label", sa.String, nullable=False),
        sa.Column("source_topic", sa.String),
        sa.PrimaryKeyConstraint("run_id", "unit", "flow", name="pk_audit_unit_flows"),
        sa.ForeignKeyConstraint(
            ["run_id", "unit"],
            ["audit_units.run_id", "audit_units.unit"],
            name="fk_audit_unit_flows_unit",
        ),
    )


def _create_exclusions() -> None:
    op.create_table(
        "exclusions",
        sa.Column("id", sa.String, nullable=False),
        sa.Column("flows", sa.JSON, nullable=False),
        sa.Column("start_at", sa.BigInteger, nullable=False),
        sa.Column("end_at", sa.BigInteger, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("added_by", sa.String, nullable=False),
        sa.Column("added_at", sa.BigInteger, nullable=False),
        sa.Column("removed_by", sa.String),
        sa.Column("removed_at", sa.BigInteger),
        sa.Column("silence", sa.String),
        sa.PrimaryKeyConstraint("id", name="pk_exclusions"),
    )
    op.create_index("ix_exclusions_start_at", "exclusions", ["start_at"])


def _create_sli_history() -> None:
    op.create_table(
        "sli_indicators",
        sa.Column("id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("source", sa.String, nullable=False),
        sa.Column("target", sa.String, nullable=False),
        sa.Column("sli", sa.String, nullable=False),
        sa.Column("tier", sa.String, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sli_indicators"),
        sa.UniqueConstraint("source", "target", "sli", "tier", name="uq_sli_indicators_names"),
    )
    op.create_table(
        "sli_steps",
        sa.Column("indicator", sa.Integer, nullable=False),
        sa.Column("end_at", sa.BigInteger, nullable=False),
        sa.Column("good", sa.Double, nullable=False),
        sa.Column("bad", sa.Double, nullable=False),
        sa.Column("unknown", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("indicator", "end_at", name="pk_sli_steps"),
        sa.ForeignKeyConstraint(
            ["indicator"], ["sli_indicators.id"], name="fk_sli_steps_indicator"
        ),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "sli_counters",
        sa.Column("replica", sa.String, nullable=False),
        sa.Column("indicator", sa.Integer, nullable=False),
        sa.Column("scraped_at", sa.BigInteger, nullable=False),
        sa.Column("good", sa.Double, nullable=False),
        sa.Column("total", sa.Double, nullable=False),
        sa.Column("unknown", sa.Double, nullable=False),
        sa.Column("started_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("replica", "indicator", name="pk_sli_counters"),
        sa.ForeignKeyConstraint(
            ["indicator"], ["sli_indicators.id"], name="fk_sli_counters_indicator"
        ),
    )


def _create_digests() -> None:
    op.create_table(
        "digests",
        sa.Column("period", sa.String, nullable=False),
        sa.Column("channel", sa.String, nullable=False),
        sa.Column("claimed_at", sa.BigInteger, nullable=False),
        sa.Column("sent_at", sa.BigInteger),
        sa.Column("ts", sa.String),
        sa.PrimaryKeyConstraint("period", "channel", name="pk_digests"),
    )
