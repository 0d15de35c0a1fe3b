"""The audit: runs, units, evidence, completion, leases, run directories."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
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
        sa.Column("salt", sa.BigInteger, nullable=False),
        sa.Column("config_hash", sa.String, nullable=False),
        sa.Column("versions", sa.JSON, nullable=False),
        sa.Column("exit_code", sa.Integer),
        sa.Column("verdict_line", sa.String),
        sa.Column("complete_up_to", sa.BigInteger),
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
