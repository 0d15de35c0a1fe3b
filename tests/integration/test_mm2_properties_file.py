"""MirrorMaker 2 and the exporter from one properties file, with the ACLs that `render` prints.

SCRAM over TLS on the source, mutual TLS on the target. Both processes take their credentials from
the file's references, each from its own folder, so that both have least privilege.
"""

import argparse
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from exporter_watch import FAST, Scrape, Watch
from secured_listeners import (
    STORE_PASSWORD,
    Certificates,
    Listener,
    add_scram_user,
    admin_client,
    running_broker,
    tls_properties,
)
from transactional_traffic import consume_and_commit

from mm2slo_cli.check_connect import diagnose
from mm2slo_cli.config_files import load_source
from mm2slo_cli.config_options import ConfigSource
from mm2slo_cli.exporter import run_exporter
from mm2slo_cli.mirror_config_files import name_by_form, read_setups
from mm2slo_core.file_syntax import dump_properties, dump_yaml
from mm2slo_core.kafka_permissions import CheckResult, Component
from mm2slo_core.mm2_config.rendered_setup import render_acls
from mm2slo_core.topology import Flow
from mm2slo_kafka.cluster_inspection import ClusterInspection
from mm2slo_lab.broker import Broker
from mm2slo_lab.kafka_runtime import Runtime
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.lab_topology import APP, DEFAULT_VERSION, LabSecurity, LabTopology
from mm2slo_lab.managed_process import ManagedProcess, wait_for
from mm2slo_lab.mirror_properties import mirror_properties

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("secured-lab")]


class PrintedAcl(NamedTuple):
    """An ACL that `mm2slo render` prints; its name is such as `eu Read topic us.orders`."""

    name: str
    cluster: str
    binding: AclBinding


def parse_acls(line: str) -> Iterator[PrintedAcl]:
    """The ACLs that a line of `kafka-acls.sh` adds."""
    parser = argparse.ArgumentParser()
    for name in ("--bootstrap-server", "--command-config", "--allow-principal"):
        parser.add_argument(name, required=True)
    parser.add_argument("--add", action="store_true", required=True)
    parser.add_argument("--operation", action="append", required=True)
    kinds = parser.add_mutually_exclusive_group(required=True)
    kinds.add_argument("--topic")
    kinds.add_argument("--group")
    parser.add_argument("--resource-pattern-type", default="literal")
    given = parser.parse_args(shlex.split(line)[1:])
    cluster = given.command_config.removeprefix("admin-").removesuffix(".properties")
    kind, name = ("topic", given.topic) if given.topic else ("group", given.group)
    for operation in given.operation:
        binding = AclBinding(
            ResourceType[kind.upper()],
            name,
            ResourcePatternType[given.resource_pattern_type.upper()],
            given.allow_principal,
            "*",
            AclOperation[re.sub(r"\B(?=[A-Z])", "_", operation).upper()],
            AclPermissionType.ALLOW,
        )
        yield PrintedAcl(f"{cluster} {operation} {kind} {name}", cluster, binding)


def grant(broker: Broker, acl: AclBinding) -> None:
    admin = admin_client(broker)
    (future,) = admin.create_acls([acl]).values()
    future.result(60)


def revoke(broker: Broker, acl: AclBinding) -> None:
    admin = admin_client(broker)
    same = AclBindingFilter(
        acl.restype,
        acl.name,
        acl.resource_pattern_type,
        acl.principal,
        None,  # type: ignore[arg-type]  # None means any host; missing in the stub
        acl.operation,
        acl.permission_type,
    )
    (future,) = admin.delete_acls([same]).values()
    assert len(future.result(60)) == 1


@contextmanager
def revoked(broker: Broker, acl: AclBinding) -> Iterator[None]:
    """Take *acl* away until the block ends."""
    revoke(broker, acl)
    try:
        yield
    finally:
        grant(broker, acl)


@contextmanager
def reduced_to_describe(broker: Broker, acl: AclBinding) -> Iterator[None]:
    """Allow only Describe in place of *acl* until the block ends."""
    describe = AclBinding(
        acl.restype,
        acl.name,
        acl.resource_pattern_type,
        acl.principal,
        "*",
        AclOperation.DESCRIBE,
        acl.permission_type,
    )
    grant(broker, describe)
    try:
        with revoked(broker, acl):
            yield
    finally:
        revoke(broker, describe)


FLOW, TOPIC, GROUP, COUNT = Flow("us", "eu"), "orders", "shop", 1000
EXPORTER = "exporter"
USERS: Mapping[str, Collection[Component]] = {
    APP.name: ["mirrormaker2"],
    EXPORTER: ["exporter", "audit"],
}
WORKING = {"running", "idle"}
STATE, TIMELINE = "mm2slo.state.internal", "mm2slo.watermarks.internal"
ARRIVALS = "mm2slo.arrivals.internal"


class Loss(NamedTuple):
    """Stages that fail without an ACL: in a running exporter, in one that starts without it, and
    also in both while MirrorMaker 2 replicates nothing."""

    running: Collection[str] = ()
    at_start: Collection[str] = ()
    waiting: Collection[str] = ()


_COPY = ("eu topics", "eu topic_ids", "eu end_offsets", "eu start_offsets")
LOSSES = {
    "us Read topic orders": Loss(
        ("us topics", "us topic_ids", "us end_offsets", "us start_offsets")
    ),
    "us DescribeConfigs topic orders": Loss(["us topic_configs"]),
    "us Read topic heartbeats": Loss((), ["us canary_send"], ["us tail_records"]),
    "us Write topic heartbeats": Loss(["us canary_send"]),
    "us DescribeConfigs topic heartbeats": Loss(["us topic_configs"]),
    "us Read topic mm2-offset-syncs.eu.internal": Loss(["us offset_syncs"]),
    "us Read topic mm2-configs.eu.internal": Loss(),
    "us Describe group shop": Loss(["us groups"], ["us groups"]),
    "eu Read topic us.orders": Loss(_COPY),
    "eu DescribeConfigs topic us.orders": Loss(["eu topic_configs"]),
    "eu Read topic us.heartbeats": Loss([*_COPY, "eu canary_receive", "eu heartbeats"]),
    "eu DescribeConfigs topic us.heartbeats": Loss(["eu topic_configs"]),
    "eu Read topic us.checkpoints.internal": Loss(["eu checkpoints"]),
    "eu Read topic mm2-offsets.us.internal": Loss(["eu committed_offsets"]),
    "eu Read topic mm2-status.us.internal": Loss(["eu status"]),
    "eu Read topic mm2-configs.us.internal": Loss(["eu connector_configs"]),
    f"eu Read topic {TIMELINE}": Loss((), ["eu timeline"]),
    f"eu Write topic {TIMELINE}": Loss(["eu timeline"]),
    f"eu Read topic {ARRIVALS}": Loss(),  # for audits
    f"eu Write topic {ARRIVALS}": Loss(["eu arrivals"]),
    f"eu Read topic {STATE}": Loss(["eu state"]),
    f"eu Write topic {STATE}": Loss(["eu state"]),
    "eu Read group mm2slo.leader.": Loss(["eu leadership"], ["eu leadership"]),
    "us Read group mm2slo.canary.": Loss(["us canary_send"], ["us canary_send"]),
    "eu Describe group shop": Loss(["eu groups"], ["eu groups"]),
    # For Spark, in an audit.
    "us Read group spark-kafka-": Loss(),
    "eu Read group spark-kafka-": Loss(),
}
# Needed where the topic is missing; MirrorMaker 2 has created heartbeats.
CREATE = {
    "us Create topic heartbeats",
    f"eu Create topic {STATE}",
    f"eu Create topic {TIMELINE}",
    f"eu Create topic {ARRIVALS}",
}
# MirrorMaker 2's settings in the file, beside the lab's.
SETTINGS = {
    "topics": TOPIC,
    "groups": GROUP,
    "us->eu.sync.group.offsets.enabled": "true",
    "config.providers": "folder,file",
    "config.providers.folder.class": (
        "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
    ),
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
}


@dataclass(frozen=True)
class Mirrored:
    """The clusters by alias, the properties file, `mm2slo`'s source, and MirrorMaker 2."""

    brokers: Mapping[str, Broker]
    file: Path
    source: ConfigSource
    process: ManagedProcess

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause MirrorMaker 2 until the block ends."""
        self.process.pause()
        try:
            yield
        finally:
            self.process.resume()

    def acls(self, user: str) -> dict[str, PrintedAcl]:
        """The ACLs of *user* that `mm2slo render --to acls` prints, by their names."""
        setups, problems = read_setups(name_by_form([self.file]))
        assert problems == []
        texts, findings = render_acls(setups, {f"User:{user}": USERS[user]})
        assert findings == []
        lines = texts["acls.sh"].splitlines()
        return {acl.name: acl for line in lines for acl in parse_acls(line)}


def write_secrets(folder: Path, user: str, certificates: Certificates) -> None:
    """What the file refers to, for one principal."""
    folder.mkdir()
    (folder / "us.properties").write_text(
        dump_properties({"user": user, "password": password_of(user)}), encoding="ascii"
    )
    (folder / "eu-store-password").write_text(STORE_PASSWORD, encoding="ascii")
    (folder / "eu-client.p12").write_bytes(certificates.key_store(user))
    (folder / "eu-trust.p12").write_bytes(certificates.trust_store)


def password_of(user: str) -> str:
    return APP.password if user == APP.name else f"{user}-secret"


def clients(us: Broker, mutual: Listener, secrets: Path) -> dict[str, dict[str, str]]:
    """The clusters' settings in the file."""
    user, password = (f"${{file:{secrets}/us.properties:{key}}}" for key in ("user", "password"))
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return {
        "us": {
            **us.java(),
            "sasl.jaas.config": f'{module} required username="{user}" password="{password}";',
        },
        "eu": {
            "bootstrap.servers": mutual.bootstrap_servers,
            "security.protocol": "SSL",
            **{
                f"ssl.{store}.{key}": value
                for store, name in (("truststore", "eu-trust.p12"), ("keystore", "eu-client.p12"))
                for key, value in (
                    ("type", "PKCS12"),
                    ("location", f"{secrets}/{name}"),
                    ("password", f"${{folder:{secrets}:eu-store-password}}"),
                )
            },
        },
    }


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirrored]:
    root = tmp_path_factory.mktemp("one-file")
    certificates = Certificates()
    mutual = Listener("MUTUAL", "SSL", tls_properties(certificates, root / "tls", "required"))
    secrets, own_secrets = root / "secrets", root / "exporter-secrets"
    write_secrets(secrets, APP.name, certificates)
    write_secrets(own_secrets, EXPORTER, certificates)
    topology = LabTopology(flows=(FLOW,), mm2_properties=SETTINGS)
    with ExitStack() as running:
        us = running.enter_context(running_broker("us", root, LabSecurity.SASL_SSL))
        eu = running.enter_context(running_broker("eu", root, LabSecurity.SASL_PLAINTEXT, [mutual]))
        file = root / "mm2.properties"
        properties = mirror_properties(topology, clients(us, mutual, secrets))
        file.write_text(dump_properties(properties), encoding="ascii")
        # Intervals of seconds, and any port.
        fast = root / "mm2slo.yaml"
        fast.write_text(dump_yaml({"exporter": FAST}), encoding="utf-8")
        source = ConfigSource(fast, mm2=[file], path=[f"{secrets}={own_secrets}"])
        main = "org.apache.kafka.connect.mirror.MirrorMaker"
        runtime = Runtime.prepare(DEFAULT_VERSION, root)
        process = ManagedProcess(runtime.mirror.spec("mm2", 384, main, str(file)))
        found = Mirrored({"us": us, "eu": eu}, file, source, process)
        add_scram_user(us, EXPORTER, password_of(EXPORTER))
        for acl in (*found.acls(APP.name).values(), *found.acls(EXPORTER).values()):
            grant(found.brokers[acl.cluster], acl.binding)
        us.admin.create_topic(TOPIC, 1)
        produce(us.librdkafka(), TOPIC, Load(COUNT))
        consume_and_commit(us.librdkafka(), TOPIC, GROUP, 10)
        running.callback(process.kill)
        process.start()
        process.wait_until(
            lambda: sum(eu.admin.end_offsets(f"us.{TOPIC}").values()) == COUNT,
            "replicating orders",
        )
        yield found


@contextmanager
def watched(mirrored: Mirrored) -> Iterator[Watch]:
    """Start an exporter from the file."""
    with run_exporter(lambda: load_source(mirrored.source)[0]) as (service, server):
        found = Watch(service, server.url)
        found.until_ready()
        yield found


@pytest.fixture(scope="module")
def seen(mirrored: Mirrored) -> Iterator[Watch]:
    with watched(mirrored) as found:
        # Until then it reads heartbeats on the source, to find canaries of an earlier exporter.
        found.until(
            lambda s: s.value("mm2_canary_received_total", flow=str(FLOW)), "arrivals of canaries"
        )
        # Until then it reads records that wait even for a moment.
        progress = "mm2_replication_progress_timestamp_seconds"
        found.until(lambda s: s.values(progress, topic="heartbeats"), "progress of heartbeats")
        yield found


def doctor(mirrored: Mirrored) -> list[CheckResult]:
    """What `mm2slo check --connect` finds with the file."""
    config = load_source(mirrored.source)[0]
    with ExitStack() as connected:
        clusters = {
            alias: ClusterInspection(alias, cluster.librdkafka_properties())
            for alias, cluster in config.clusters.items()
        }
        for cluster in clusters.values():
            connected.enter_context(cluster.client)
        return list(diagnose(config, clusters, {}, allow_writes=False))


def failures(before: Scrape, after: Scrape) -> set[str]:
    """Clusters and stages with errors between two scrapes; each is a missing permission."""
    name = "mm2_exporter_collect_errors_total"
    start = before.values(name)
    found = [
        dict(labels) for labels, count in after.values(name).items() if count > start.get(labels, 0)
    ]
    # librdkafka reports partitions of topics without permission as unknown.
    assert {each["reason"] for each in found} <= {"authorization", "unknown_topic"}, found
    return {f"{each['cluster']} {each['stage']}" for each in found}


def until_failing(seen: Watch, before: Scrape, expected: set[str]) -> None:
    """Wait until *expected* have failed, and assert that no other stage has."""
    after = seen.until(lambda s: failures(before, s) >= expected, f"{expected} to fail")
    assert failures(before, after) == expected


def wait_without_failures(seen: Watch) -> None:
    def recovered(scrape: Scrape) -> bool:
        return not failures(scrape, seen.after_cycles(1))

    seen.until(recovered, "stages without errors")


def to_fix(results: Sequence[CheckResult]) -> list[tuple[str, str, str]]:
    return [(each.where, each.check, each.finding) for each in results if each.state == "fix"]


def test_missing_create_is_named_and_fails_the_timeline(mirrored: Mirrored) -> None:
    # Before the other tests, whose exporter creates the topic.
    eu, acl = mirrored.brokers["eu"], f"eu Create topic {TIMELINE}"
    assert TIMELINE not in eu.admin.topics()
    with revoked(eu, mirrored.acls(EXPORTER)[acl].binding):
        wait_for(lambda: bool(to_fix(doctor(mirrored))), "a finding")
        (found,) = to_fix(doctor(mirrored))
        assert found[2].startswith(f"exporter is denied Create on topic {TIMELINE}: ")
        with watched(mirrored) as seen:
            seen.until(lambda s: failures(Scrape({}), s) == {"eu timeline"}, "the stage to fail")


def test_exporter_of_same_file_reports_exact_lag(mirrored: Mirrored, seen: Watch) -> None:
    us = mirrored.brokers["us"]

    def lag(scrape: Scrape) -> float | None:
        return scrape.value("mm2_replication_lag_records", topic=TOPIC, partition="0")

    seen.until(lambda s: lag(s) == 0, "replicated records")
    with mirrored.paused():
        produce(us.librdkafka(), TOPIC, Load(100))
        seen.until(lambda s: lag(s) == 100, "the lag of a paused MirrorMaker 2")
    end = seen.until(lambda s: lag(s) == 0 and s.state(str(FLOW)) in WORKING, "a working flow")
    offset = end.value("mm2_replicated_source_offset", topic=TOPIC, partition="0")
    assert offset == sum(us.admin.end_offsets(TOPIC).values())
    assert not any(end.values("mm2_exporter_collect_errors_total").values())


def test_check_connect_of_same_file_finds_nothing_to_fix(mirrored: Mirrored) -> None:
    results = doctor(mirrored)
    assert to_fix(results) == []
    by_check = {(each.where, each.check): each.finding for each in results}
    assert by_check["us", "authentication"] == "1 broker accepts SCRAM-SHA-512"
    assert by_check["eu", "authentication"] == "1 broker accepts SSL"


def test_table_has_every_acl_of_exporter_and_audit(mirrored: Mirrored) -> None:
    assert set(mirrored.acls(EXPORTER)) == LOSSES.keys() | CREATE


@pytest.mark.parametrize("acl", LOSSES)
def test_missing_acl_is_named_and_nothing_else_breaks(
    mirrored: Mirrored, seen: Watch, acl: str
) -> None:
    cluster, operation, resource = acl.split(maxsplit=2)
    expected, printed = {*LOSSES[acl].running}, mirrored.acls(EXPORTER)[acl]
    before = seen.scrape()
    with revoked(mirrored.brokers[cluster], printed.binding):
        wait_for(lambda: bool(to_fix(doctor(mirrored))), "a finding")
        found = [finding for _, _, finding in to_fix(doctor(mirrored))]
        assert any(f"denied {operation} on {resource}" in each for each in found), found
        assert all(f" on {resource}" in each for each in found), found
        seen.until(lambda s: failures(before, s) >= expected, f"{expected} to fail")
        after = seen.after_cycles(3)
        assert failures(before, after) == expected
        assert after.state(str(FLOW)) in WORKING
    wait_for(lambda: not to_fix(doctor(mirrored)), "no finding")
    wait_without_failures(seen)


@pytest.mark.parametrize(
    ("topic", "stages"),
    [
        ("us.checkpoints.internal", ["checkpoints"]),
        ("us.heartbeats", ["canary_receive", "heartbeats"]),
    ],
)
def test_describe_without_read_fails_its_stages_until_read_is_granted(
    mirrored: Mirrored, seen: Watch, topic: str, stages: Sequence[str]
) -> None:
    def errors(scrape: Scrape, stage: str) -> float:
        name = "mm2_exporter_collect_errors_total"
        labels = {"cluster": "eu", "stage": stage, "reason": "authorization"}
        return scrape.value(name, **labels) or 0.0

    def keep_failing(scrape: Scrape) -> bool:
        return all(errors(scrape, each) - errors(before, each) >= 20 for each in stages)

    printed, before = mirrored.acls(EXPORTER)[f"eu Read topic {topic}"], seen.scrape()
    with reduced_to_describe(mirrored.brokers["eu"], printed.binding):
        # For longer than one assignment of the consumer, which reports it once.
        seen.until(keep_failing, f"{stages} to keep failing")
        after = seen.scrape()
        assert failures(before, after) == {f"eu {each}" for each in stages}
        assert after.state(str(FLOW)) in WORKING
    wait_without_failures(seen)


@pytest.mark.parametrize("acl", [acl for acl, loss in LOSSES.items() if loss.waiting])
def test_acl_missing_while_records_wait_fails_its_stages(
    mirrored: Mirrored, seen: Watch, acl: str
) -> None:
    loss, printed, before = LOSSES[acl], mirrored.acls(EXPORTER)[acl], seen.scrape()
    with revoked(mirrored.brokers[printed.cluster], printed.binding), mirrored.paused():
        until_failing(seen, before, {*loss.waiting})
        # An exporter that starts reads waiting records at once; without the pause some may wait.
        with watched(mirrored) as later:
            until_failing(later, Scrape({}), {*loss.waiting, *loss.at_start})
    seen.until(lambda s: s.state(str(FLOW)) in WORKING, "a working flow")


@pytest.mark.parametrize(
    "acl", [acl for acl, loss in LOSSES.items() if loss.at_start and not loss.waiting]
)
def test_acl_missing_at_start_fails_its_stage(mirrored: Mirrored, seen: Watch, acl: str) -> None:
    seen.until_ready()  # it has created the timeline's topic
    printed = mirrored.acls(EXPORTER)[acl]
    with revoked(mirrored.brokers[printed.cluster], printed.binding), watched(mirrored) as later:
        until_failing(later, Scrape({}), {*LOSSES[acl].at_start})


def test_create_is_not_needed_for_existing_topics(mirrored: Mirrored, seen: Watch) -> None:
    seen.until_ready()
    with ExitStack() as missing:
        for acl in CREATE:
            printed = mirrored.acls(EXPORTER)[acl]
            missing.enter_context(revoked(mirrored.brokers[printed.cluster], printed.binding))
        assert to_fix(doctor(mirrored)) == []
        with watched(mirrored) as later:
            name = "mm2_exporter_last_success_timestamp_seconds"
            for each in ("us", "canary_send"), ("eu", "timeline"):
                labels = dict(zip(("cluster", "stage"), each, strict=True))
                later.until(lambda s: s.value(name, **labels), f"success of {each}")  # noqa: B023  called at once
            assert failures(Scrape({}), later.scrape()) == set()


def test_unreadable_group_is_not_ready_and_deleted_group_is_dropped(
    mirrored: Mirrored, seen: Watch
) -> None:
    us = mirrored.brokers["us"]

    def ready(scrape: Scrape) -> float | None:
        return scrape.value("mm2_failover_ready", group=GROUP)

    seen.until(lambda s: ready(s) == 1, "a group that is ready")
    with revoked(us, mirrored.acls(EXPORTER)[f"us Describe group {GROUP}"].binding):
        blocked = seen.until(lambda s: ready(s) == 0, "an unreadable group")
        reasons = blocked.values("mm2_failover_blocked", group=GROUP)
        assert {dict(k)["reason"] for k, v in reasons.items() if v} == {"source_unreadable"}
    seen.until(lambda s: ready(s) == 1, "a group that is ready again")
    before = seen.scrape()
    admin = admin_client(us)
    admin.delete_consumer_groups([GROUP])[GROUP].result(60)
    seen.until(lambda s: ready(s) is None, "the group to be dropped")
    assert failures(before, seen.after_cycles(3)) == set()
    # Its checkpoint remains.
    with watched(mirrored) as later:
        assert failures(Scrape({}), later.after_cycles(3)) == set()
