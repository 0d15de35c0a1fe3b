"""`audit:` of the file and of flows: values, invalid values, and secrets."""

import pytest

from mm2slo_core.audit.fingerprint import Identity
from mm2slo_core.config.config_document import ConfigError
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.config.config_model import Config
from mm2slo_core.quantity_text import percent_text

CLUSTERS = """\
clusters: {us: {bootstrap_servers: "us:9092"}, eu: {bootstrap_servers: "eu:9092"}}
"""
FLOWS = "flows: [{flow: us->eu}]\n"


def of_flow(audit: str) -> str:
    return f"flows:\n  - flow: us->eu\n    audit: {audit}\n"


def flow_with(audit: str) -> Config:
    return load_config(CLUSTERS + of_flow(audit))


def test_audit_defaults() -> None:
    config = load_config(CLUSTERS + FLOWS)
    audit = config.audit
    assert audit.store.reveal() == "sqlite:///mm2slo.db"
    assert (audit.directory, audit.sample) == ("mm2slo-audit", 0.01)
    assert (audit.spark.master, audit.spark.jars, dict(audit.spark.conf)) == ("local[*]", None, {})
    of_flow = config.flows[0].audit
    assert (of_flow.topics, of_flow.topics_exclude, of_flow.max_pending) == ((".*",), (), 300.0)
    assert of_flow.identity.identity == Identity()


def test_identity_excludes_disabled_parts() -> None:
    config = flow_with(
        "{max_pending: 90s,"
        " identity: {timestamp: false, ignored_headers: [hop], hmac_key: k\u00e4y}}"
    )
    assert config.flows[0].audit.max_pending == 90.0
    assert config.flows[0].audit.identity.identity == Identity(
        timestamp=False, ignored_headers=("hop",), hmac_key="k\u00e4y".encode()
    )
    assert "k\u00e4y" not in repr(config)


def test_must_change_excludes_its_parts_from_the_identity() -> None:
    config = flow_with('{identity: {ignored_headers: [hop], must_change: [value, "header:ssn"]}}')
    assert config.flows[0].audit.identity.identity == Identity(
        value=False, ignored_headers=("hop", "ssn"), must_change=("value", "header:ssn")
    )


@pytest.mark.parametrize("part", ["values", "header:", "timestamp"])
def test_must_change_of_unknown_part_is_rejected(part: str) -> None:
    with pytest.raises(ConfigError, match="is not a part of a record"):
        flow_with(f'{{identity: {{must_change: ["{part}"]}}}}')


@pytest.mark.parametrize(
    ("text", "share", "shown"),
    [
        ("1%", 0.01, "1%"),
        ("0.1 %", 0.001, "0.1%"),
        ("100%", 1.0, "100%"),
        ("0.25", 0.25, "25%"),
        ("0.0001%", 0.000001, "0.0001%"),
    ],
)
def test_sample_is_parsed_as_a_share(text: str, share: float, shown: str) -> None:
    config = load_config(f"{CLUSTERS}{FLOWS}audit: {{sample: {text}}}\n")
    assert config.audit.sample == pytest.approx(share)
    assert percent_text(config.audit.sample) == shown


def test_store_and_spark_properties_are_not_shown() -> None:
    config = load_config(
        CLUSTERS
        + FLOWS
        + "audit: {store: 'postgresql://app:hunter2@db/slo',"
        + " spark: {conf: {spark.hadoop.fs.s3a.secret.key: hunter3, spark.cores.max: 4}}}\n"
    )
    assert "hunter" not in repr(config)
    assert "hunter" not in config.model_dump_json()
    revealed = {name: value.reveal() for name, value in config.audit.spark.conf.items()}
    assert revealed == {"spark.hadoop.fs.s3a.secret.key": "hunter3", "spark.cores.max": "4"}


MISTAKES = {
    "no part compared": (of_flow("{identity: {key: false, value: false, headers: false}}"),
        "flows[0].audit.identity (line 4): excludes key, value and headers\n"
        "  expected: at least one of key, value and headers"),
    "ignored headers without headers": (of_flow(
        "{identity: {headers: false, ignored_headers: [hop]}}"),
        "flows[0].audit.identity.ignored_headers (line 4): has no effect with headers: false\n"
        "  expected: headers: true\n  next step: remove it"),
    "a sample of 0%": (f"{FLOWS}audit: {{sample: 0%}}\n",
        "audit.sample (line 3): '0%' is out of range\n"
        "  expected: a percentage from 0.0001% to 100%"),
    "a sample above 100%": (f"{FLOWS}audit: {{sample: 2}}\n",
        "audit.sample (line 3): 2 is out of range\n  expected: a percentage from 0.0001% to 100%"),
    "text for a sample": (f"{FLOWS}audit: {{sample: some}}\n",
        "audit.sample (line 3): 'some' is not a percentage\n"
        "  expected: a percentage such as 1%, 0.1% or 100%\n  next step: write 1%, for example"),
    "a Spark property with its own key": (
        f"{FLOWS}audit: {{spark: {{conf: {{spark.master: yarn}}}}}}\n",
        "audit.spark.conf['spark.master'] (line 3): is set by audit.spark.master\n"
        "  expected: Spark properties that are not set elsewhere\n  next step: remove it"),
    "a property of another system": (
        f"{FLOWS}audit: {{spark: {{conf: {{kafka.ssl.protocol: TLS}}}}}}\n",
        "audit.spark.conf['kafka.ssl.protocol'] (line 3): is not a Spark property\n"
        "  expected: names that start with spark."),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), MISTAKES.values(), ids=[*MISTAKES])
def test_invalid_audit_setting_is_reported(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(CLUSTERS + text)
    (problem,) = refused.value.problems
    assert str(problem) == expected
