"""The Helm chart against Helm, Pod Security `restricted`, the command line and the services."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import jsonschema
import pytest
import trustme
import yaml
from acl_grants import implies, least_grants
from helm_chart import (
    CASES,
    CHART,
    FOLDER,
    helm_resources,
    namespace,
    needs_helm,
    render,
    rendering,
    run_helm,
)
from promtool import needs_promtool, run_rule_tests
from strimzi_schemas import KubernetesLoader, needs_definitions, schema_errors

from mm2slo_alerts.alert_files import ALERTMANAGER_CONFIG, GeneratedFormat, generated
from mm2slo_cli.chart_files import NAMESPACE as PLACEHOLDER
from mm2slo_cli.config_files import load_source
from mm2slo_cli.config_options import ConfigSource
from mm2slo_cli.main import main
from mm2slo_core.catalogue import NAMESPACED
from mm2slo_core.config.alerting_config import AlertingConfig
from mm2slo_core.config.config_section import Section
from mm2slo_core.config.secret import Secret
from mm2slo_core.config.service_config import ExporterConfig, ReportConfig
from mm2slo_core.kafka_permissions import AclGrant, AclPattern, FlowResources
from mm2slo_core.replication_policy import DefaultPolicy, internal_topics
from mm2slo_exporter.web.exporter_routes import _ROUTES
from mm2slo_report.web.operation_routes import health_router, metrics_router

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mm2slo_core.config.config_model import Config

ROOT = FOLDER.parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PORTS = {"exporter": ExporterConfig().listen.port, "report": ReportConfig().listen.port}
cases = pytest.mark.parametrize("case", CASES)


def pods(case: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The pod specs of *case* with the names of their resources; also that of executors."""
    for each in rendering(case):
        spec = each.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        if "template" in spec:
            yield each["metadata"]["name"], spec["template"]["spec"]
        elif "executor.yaml" in each.get("data", {}):
            yield "executor", yaml.safe_load(each["data"]["executor.yaml"])["spec"]


@needs_helm
@cases
def test_rendering_is_what_helm_renders(case: str) -> None:
    path = FOLDER / "renderings" / f"{case}.yaml"
    assert render(case) == path.read_text(encoding="utf-8"), "run tests/support/helm_chart.py"


@needs_helm
@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("exporter.replica=2", "additional properties 'replica' not allowed"),
        ("exporter.replicas=3", "exporter.replicas is 3; expected 1 or 2"),
        ("exporter.replicas=two", "got string, want integer"),
        ("config.flows=null", "no flows: set mirrorMaker2.resource"),
        ("report.tokens.secretName=", "report.tokens.secretName is not set"),
        ("report.replicas=2", "more than 1 needs store.postgresql.url"),
        (
            "report.replicas=2,store.postgresql.url=postgresql+psycopg://a@b/c",
            "report.replicas is 2, and the volume is ReadWriteOnce; more than 1 needs",
        ),
        ("config.clusters.us.security.sasl.password=hunter2", "sasl.password contains a secret"),
        ("config.clusters.us.client.x=password=hunter2", "client.x contains a secret"),
        ("store.postgresql.url=postgresql://a:b@c/d", "store.postgresql.url contains a secret"),
        ("store.postgresql.url=a://b@c/d?password=e", "set store.postgresql.secretName"),
        ("config.audit.store=postgresql://a:b@c/d", "config.audit.store contains a secret"),
        ("config.alerting.webhooks[0].url=https://a:b@c", "webhooks[0].url contains a secret"),
        (
            "config.alerting.receivers[0].slack_configs[0].api_url=https://hooks.example/x",
            "config.alerting.receivers[0].slack_configs[0].api_url contains a secret",
        ),
        (
            "digest.enabled=true,store.persistence.accessMode=ReadWriteOncePod",
            "accessMode is ReadWriteOncePod; expected ReadWriteOnce or ReadWriteMany",
        ),
        (
            "config.report.tls.cert_file=/a,config.report.tls.key_file=/b",
            "config.report.tls is set, but not tls.secretName: probes and recorder would use HTTP",
        ),
        ("config.report.listen=:80", "config.report.listen is :80; remove it"),
        ("config.alerting.namespace=b", "config.alerting.namespace is b; expected"),
        ("ingress.enabled=true", "ingress.host is not set"),
        ("podMonitor.enabled=true,serviceMonitor.enabled=true", "would be scraped twice"),
        ("prometheusRule.enabled=true,prometheusRule.content=a: b", "content has no spec"),
        (
            "prometheusRule.content=spec: {}",
            "content is set, but not prometheusRule.enabled",
        ),
        ("audit.enabled=true,audit.spark.master=yarn", "audit.spark.master is yarn; expected"),
        ("audit.enabled=true,audit.spark.master=k8s://a", "executors write record details"),
        (
            "config.clusters.us.security.tls.ca_file=/run/secrets/mm2slo/u/ca.crt,"
            "config.clusters.us.security.tls.certificate_file=/run/secrets/mm2slo/u/user.crt",
            "config.clusters.us.security.tls trusts ca.crt of u, the Secret of a KafkaUser",
        ),
        ("config.exporter.listn=1", "'/config/exporter': additional properties 'listn' not"),
        ("config.defaults.flow=us->eu", "'/config/defaults': additional properties 'flow' not"),
        ("config.report=null", "'/config/report': got null, want object"),
        ("config=null", "config is null; expected a mapping"),
        ("config.flows[0].flow=us-eu", "config.flows[0].flow is us-eu; expected source->target"),
        (
            "config.flows[0].flow=usx->eu",
            "config.flows[0].flow is usx->eu; the cluster usx is unknown: expected one of eu, us,",
        ),
        ("slack.secretName=", "'/slack/secretName': minLength: got 0, want 1"),
        ("image.repository=", "'/image/repository': minLength: got 0, want 1"),
        ("secrets[0].name=x", "'/secrets/0': got object, want string"),
        ("audit=null", "audit is null; expected a mapping"),
        ("store.persistence=null", "store.persistence is null; expected a mapping"),
        ("audit.spark=null", "audit.spark is null; expected a mapping"),
        (
            "config.alerting.receivers[0].pagerduty_configs[0].routing_key=abc",
            "config.alerting.receivers[0].pagerduty_configs[0].routing_key contains a secret",
        ),
        (
            "route.enabled=true,route.host=a,tls.secretName=x",
            "route.termination is edge; expected reencrypt or passthrough with tls.secretName",
        ),
        (
            "route.enabled=true,route.host=a,route.termination=reencrypt",
            "route.termination is reencrypt; expected edge without tls.secretName",
        ),
    ],
)
def test_wrong_value_is_refused(option: str, message: str) -> None:
    done = run_helm("minimal", "--set", option)
    assert done.returncode != 0
    assert message in done.stderr


@needs_helm
@pytest.mark.parametrize(
    ("kind", "key", "rest"),
    [
        ("prometheusRule", "slo", ".window=7d"),
        ("prometheusRule", "alerting.severities", ".page=critical"),
        ("prometheusRule", "alerting.labels", ".team=data"),
        ("prometheusRule", "alerting.exporter_job", "=monitoring/mm2slo"),
        ("prometheusRule", "defaults.freshness", "[0].threshold=5m"),
        ("prometheusRule", "flows[0].canary.latency_tiers", "={2s,20s}"),
        ("alertmanagerConfig", "alerting.slack", "[0].name=ops"),
        ("alertmanagerConfig", "alerting.severities", ".page=critical"),
    ],
)
def test_resource_of_the_chart_that_config_does_not_apply_to_is_refused(
    kind: str, key: str, rest: str
) -> None:
    values = ("--set", f"{kind}.enabled=true,config.{key}{rest}")
    done = run_helm("minimal", *values)
    place = key.replace("[0]", "[us->eu]")
    expected = f"config.{place} does not apply to the chart's {kind}; set {kind}.content to"
    assert expected in done.stderr
    content = f"{kind}.content=metadata: {{namespace: replication}}\nspec: {{a: 1}}"
    done = run_helm("minimal", *values, "--set-literal", content)
    assert done.returncode == 0, done.stderr


@needs_helm
@pytest.mark.parametrize(("old", "new"), [
    ("eu-cluster-ca-cert", "mirror-eu"),
    ("eu-cluster-ca-cert\n          certificate: ca.crt", "mirror-eu\n          pattern: '*.crt'"),
])  # fmt: skip
def test_trust_in_the_secret_of_a_kafka_user_is_refused(tmp_path: Path, old: str, new: str) -> None:
    text = (FOLDER / "examples" / "mirror.yaml").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "mirror.yaml").write_text(text.replace(old, new), encoding="utf-8")
    resource = f"mirrorMaker2.resource={tmp_path / 'mirror.yaml'}"
    done = run_helm("strimzi", "--set-file", resource)
    assert done.returncode != 0
    assert "the cluster eu trusts ca.crt of mirror-eu, the Secret of a KafkaUser" in done.stderr
    assert "expected ca.crt of the Secret CLUSTER-cluster-ca-cert" in done.stderr


@needs_helm
@needs_definitions
@cases
def test_custom_resources_match_their_definitions(case: str) -> None:
    found = [each for each in helm_resources(case) if each["apiVersion"].startswith("monitoring.")]
    assert schema_errors(yaml.safe_dump_all(found)) == []


@cases
def test_schema_accepts_example_and_refuses_misspelt_key(case: str) -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    values = yaml.safe_load((FOLDER / "examples" / f"{case}.yaml").read_text(encoding="utf-8"))
    jsonschema.validate(values, schema)
    values["report"]["token"] = {}
    with pytest.raises(jsonschema.ValidationError, match="'token' was unexpected"):
        jsonschema.validate(values, schema)


USUAL = """
  metricsConfig:
    type: jmxPrometheusExporter
    valueFrom: {configMapKeyRef: {name: metrics, key: metrics.yaml}}
  logging:
    type: external
    valueFrom: {configMapKeyRef: {name: logging, key: log4j2.properties}}
  template:
    pod:
      metadata: {annotations: {vault.hashicorp.com/agent-inject-secret: connect}}
      tolerations: [{key: dedicated, operator: Exists}]
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [a]}]}]
    connectContainer:
      env: [{name: PROXY, valueFrom: {secretKeyRef: {name: proxy, key: url}}}]
"""


def run_with_resource(resource: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = folder / "resource.yaml"
    path.write_text(resource, encoding="utf-8")
    return run_helm("strimzi", "--set-file", f"mirrorMaker2.resource={path}")


@needs_helm
def test_resource_may_have_keys_of_kubernetes(tmp_path: Path) -> None:
    mirror = (FOLDER / "examples" / "mirror.yaml").read_text(encoding="utf-8")
    applied = 'metadata:\n  annotations: {applied: \'"x password=\\"${a:b}\\""\', x/has-token: a}'
    text = mirror.replace("metadata:", applied).rstrip() + USUAL + "status: {token: a}\n"
    done = run_with_resource(text, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "jmxPrometheusExporter" in done.stdout


@needs_helm
@pytest.mark.parametrize(
    ("resource", "message"),
    [
        ("mirror.yaml", "expected --set-file mirrorMaker2.resource=FILE"),
        ("kind: ConfigMap", "mirrorMaker2.resource has the kind ConfigMap; expected a"),
        (
            "kind: KafkaMirrorMaker2\n spec: {",
            "mirrorMaker2.resource is no KafkaMirrorMaker2 in YAML (line 2: ",
        ),
        ("kind: KafkaMirrorMaker2\nspec: {a: {password: x}}", "spec.a.password contains a secret"),
        (
            "kind: KafkaMirrorMaker2\nspec: {a: [{name: PGPASSWORD, value: x}]}",
            "spec.a[0].PGPASSWORD contains a secret",
        ),
    ],
)
def test_wrong_resource_is_refused(resource: str, message: str, tmp_path: Path) -> None:
    done = run_with_resource(resource, tmp_path)
    assert done.returncode != 0
    assert message in done.stderr
    assert "unmarshal" not in done.stderr  # of Go


@needs_helm
@pytest.mark.parametrize(
    ("option", "line"),
    [
        ("podSecurityContext.runAsUser=1000", "runAsUser: 1000"),
        ("securityContext.capabilities.add={CHOWN}", "- CHOWN"),
        ("exporter.resources.limits.cpu=1500m", "cpu: 1500m"),
        ("exporter.resources.requests.cpu=3", "cpu: 3"),
        ("secrets=null,exporter.extraArgs=null,extraEnv=null", "replicas: 1"),
        ("mirrorMaker2.resource=null,startupProbe=null,nodeSelector=null", "replicas: 1"),
        (
            "config.alerting.receivers[0].name=on-call,"
            "config.alerting.receivers[0].pagerduty_configs[0].routing_key.name=pagerduty,"
            "config.alerting.receivers[0].pagerduty_configs[0].routing_key.key=routing",
            "key: routing",
        ),
        (
            "audit.enabled=true,image.repository=r.example/slo",
            f"image: r.example/slo-audit:{PROJECT['version']}",
        ),
        ("store.postgresql.url=postgresql+psycopg://a@b/c", "strategy: {type: Recreate}"),
        (
            "store.postgresql.url=postgresql+psycopg://a@b/c,report.replicas=2,"
            "store.persistence.enabled=false",
            "strategy: {type: RollingUpdate}",
        ),
        (
            "config.audit.store=postgresql://a:${env:PGPW}@c/d",
            "store: postgresql://a:${env:PGPW}@c/d",
        ),
        (
            "podMonitor.enabled=true,config.alerting.exporter_job=kafka/slo",
            "- {targetLabel: job, replacement: kafka/slo}",
        ),
        ("enabled=true,global.x=y", "replicas: 1"),  # of a parent chart
        ("route.enabled=true,route.host=a.example,config.report.hosts={b}", "- a.example"),
        ("route.enabled=true,route.host=a.example,config.report.hosts={b}", "- b"),
        ("audit.enabled=true,image.tag=2026-11", "image: mm2slo-audit:2026-11"),
        ("livenessProbe.initialDelaySeconds=7", "initialDelaySeconds: 7"),
        ("grafanaDashboards.enabled=true,grafanaDashboards.labels.team=storage", "team: storage"),
    ],
)
def test_object_of_kubernetes_takes_its_other_fields(option: str, line: str) -> None:
    done = run_helm("minimal", "--set", option)
    assert done.returncode == 0, done.stderr
    assert line in {each.strip() for each in done.stdout.splitlines()}


def render_with(case: str, *options: str, **values: object) -> list[dict[str, Any]]:
    """The resources of *case* with *options* and *values*."""
    for key, value in values.items():
        options += ("--set-json", f"{key}={json.dumps(value)}")
    done = run_helm(case, *options)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.load_all(done.stdout, KubernetesLoader) if each]


@needs_helm
def test_spark_properties_of_the_values_replace_those_of_the_chart() -> None:
    own = {"spark.executor.instances": 4, "spark.x": 134217728, "spark.y": True, "spark.z": None}
    spark = {"master": "k8s://a", "executors": 9, "conf": own}
    values = {"audit": {"enabled": True, "spark": spark}, "config.audit": {"directory": "s3a://a"}}
    rendered = render_with("minimal", **values)
    (job,) = (each["spec"]["jobTemplate"] for each in rendered if each["kind"] == "CronJob")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    found = re.findall(r"spark\.(?:.|executor\.instances)=\S*", " ".join(container["args"]))
    assert found == ["spark.executor.instances=4", "spark.x=134217728", "spark.y=true"]


@needs_helm
def test_executors_take_variables_labels_and_annotations_of_all_pods() -> None:
    own: dict[str, Any] = {
        "extraEnv": [{"name": "A", "value": "b"}],
        "extraEnvFrom": [{"secretRef": {"name": "c"}}],
        "podLabels": {"team": "data"},
        "podAnnotations": {"note": "x"},
    }
    (text,) = (each["data"]["executor.yaml"] for each in render_with("complete", **own)
               if "executor.yaml" in each.get("data", {}))  # fmt: skip
    pod = yaml.safe_load(text)
    (container,) = pod["spec"]["containers"]
    assert pod["metadata"]["labels"].items() >= own["podLabels"].items()
    assert pod["metadata"]["annotations"] == own["podAnnotations"]
    assert (container["env"], container["envFrom"]) == (own["extraEnv"], own["extraEnvFrom"])


@needs_helm
def test_numbers_as_names_and_indented_text_remain_text() -> None:
    mirror = (FOLDER / "examples" / "mirror.yaml").read_text(encoding="utf-8")
    found = render_with(
        "complete", "--namespace", "34", nameOverride="12",
        grafanaDashboards={"operator": True, "folder": "a: b"},
        mirrorMaker2={"resource": f"   # indented\n{mirror}"},
    )  # fmt: skip
    for each in found:
        assert each["metadata"]["namespace"] == "34"
        assert each["metadata"]["labels"]["app.kubernetes.io/name"] == "12"
    folders = {each["spec"]["folder"] for each in found if each["kind"] == "GrafanaDashboard"}
    assert folders == {"a: b"}
    (data,) = (each["data"] for each in found if "mirrormaker2.yaml" in each.get("data", {}))
    assert data["mirrormaker2.yaml"].startswith("   # indented\n# Strimzi")


@cases
def test_pods_fit_pod_security_restricted_and_restricted_v2(case: str) -> None:
    for name, pod in pods(case):
        security = pod["securityContext"]
        assert security["runAsNonRoot"] is True
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"runAsUser", "runAsGroup"} & security.keys()
        assert ("fsGroup" in security) is (case not in {"openshift", "event-streams"})
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert not [port for port in container.get("ports", []) if "hostPort" in port]
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            assert mounted <= {volume["name"] for volume in pod["volumes"]}
        kinds = {kind for volume in pod["volumes"] for kind in volume if kind != "name"}
        allowed = {"projected", "emptyDir", "secret", "persistentVolumeClaim", "configMap"}
        assert kinds <= allowed
        uses_api = (case, name) == ("complete", "mm2slo-audit")
        assert pod["automountServiceAccountToken"] is uses_api


@cases
def test_volume_of_the_store_outlives_the_release(case: str) -> None:
    (claim,) = (each for each in rendering(case) if each["kind"] == "PersistentVolumeClaim")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


@needs_helm
def test_own_affinity_adds_to_that_of_jobs() -> None:
    own = {"nodeAffinity": {"x": []}, "podAffinity": {"preferred": [1]}}
    found = render_with("minimal", "--set", "digest.enabled=true", affinity=own)
    (job,) = (each["spec"] for each in found if each["kind"] == "CronJob")
    affinity = job["jobTemplate"]["spec"]["template"]["spec"]["affinity"]
    required = affinity["podAffinity"].pop("requiredDuringSchedulingIgnoredDuringExecution")
    assert affinity == own
    assert required[0]["topologyKey"] == "kubernetes.io/hostname"


@cases
def test_only_spark_on_kubernetes_has_a_role_and_nothing_is_a_secret(case: str) -> None:
    kinds = {each["kind"] for each in rendering(case)}
    assert ("Role" in kinds) is (case == "complete")
    assert not {"Secret", "ClusterRole", "ClusterRoleBinding"} & kinds


@needs_helm
def test_chart_creates_no_service_account_if_it_must_not() -> None:
    done = run_helm("complete", "--set", "serviceAccount.create=false,serviceAccount.name=own")
    assert done.returncode == 0, done.stderr
    assert "\nkind: ServiceAccount\n" not in done.stdout
    assert "serviceAccountName: own-audit" in done.stdout


def test_component_mounts_its_own_secrets_only() -> None:
    mounted = {
        name: {volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume}
        for name, pod in pods("complete")
    }
    shared = {"mirror-eu", "mirror-us", "eu-cluster-ca-cert", "us-cluster-ca-cert", "mm2slo-tls"}
    assert mounted.pop("mm2slo-report") == {*shared, "mm2slo-report"}
    assert mounted.pop("mm2slo-digest") == {*shared, "mm2slo-slack"}
    assert mounted == dict.fromkeys(("mm2slo-exporter", "mm2slo-audit", "executor"), shared)


def test_credentials_of_clusters_with_own_users_are_not_mounted() -> None:
    own = {"mm2slo", "mm2slo-us", "eu-cluster-ca-cert", "us-cluster-ca-cert"}
    assert mounted_by_exporter(rendering("strimzi")) == own
    own = {"mm2slo-a", "mm2slo-a-us", "eu-cluster-ca-cert", "us-cluster-ca-cert"}
    assert mounted_by_exporter(rendering("tenant-a")) == own


@needs_helm
def test_credentials_of_a_cluster_without_own_user_are_mounted(tmp_path: Path) -> None:
    mirror = (FOLDER / "examples" / "mirror.yaml").read_text(encoding="utf-8")
    own = "alias: asia\n        config: {ssl.keystore.key: '${secrets:a/own-key:user.key}'}"
    done = run_with_resource(mirror.replace("alias: us", own), tmp_path)
    assert done.returncode == 0, done.stderr
    found = mounted_by_exporter(yaml.load_all(done.stdout, KubernetesLoader))
    assert found - {"mm2slo", "mm2slo-us"} == {
        "mirror-us", "own-key", "eu-cluster-ca-cert", "us-cluster-ca-cert"
    }  # fmt: skip


def test_chart_refuses_null_for_each_section_of_values() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    kubernetes = re.compile(r"pod[LA]\w+|\w*(?:Context|Probe|Selector)|affinity|labels|resources")
    sections = {key for key, each in values.items()
                if isinstance(each, dict) and not kubernetes.fullmatch(key)}  # fmt: skip
    sections |= {f"{key}/{name}" for key in sections for name, each in values[key].items()
                 if isinstance(each, dict) and each and not kubernetes.fullmatch(name)}  # fmt: skip
    helpers = (CHART / "templates" / "_helpers.tpl").read_text(encoding="utf-8")
    (listed,) = re.findall(r"range list (.*) -\}\}\n.*not \(hasKey ", helpers)
    assert set(re.findall(r"[\w/]+", listed)) == sections


def mounted_by_exporter(resources: Iterable[dict[str, Any]]) -> set[str]:
    (pod,) = (each["spec"]["template"]["spec"] for each in resources
              if each and each["kind"] == "StatefulSet")  # fmt: skip
    return {each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each}


def test_generated_routes_use_the_secret_of_the_values() -> None:
    (data,) = (each["data"] for each in rendering("minimal")
               if "mm2slo.yaml" in each.get("data", {}))  # fmt: skip
    config = AlertingConfig.model_validate(yaml.safe_load(data["mm2slo.yaml"])["alerting"])
    text = generated(formats=[GeneratedFormat.ALERTMANAGERCONFIG], alerting=config)
    receivers = next(yaml.load_all(text[ALERTMANAGER_CONFIG], KubernetesLoader))["spec"][
        "receivers"
    ]
    found = [slack["apiURL"] for each in receivers for slack in each.get("slackConfigs", ())]
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))["slack"]
    assert found == [{"name": values["secretName"], "key": values["key"]}]


def test_schema_knows_every_option_of_the_configuration() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    reference = (ROOT / "docs" / "reference-config.yaml").read_text(encoding="utf-8")
    jsonschema.validate(yaml.safe_load(reference), schema["properties"]["config"])


@cases
def test_services_have_their_ports_probes_and_scrapes(case: str) -> None:
    routes = (*health_router.routes, *metrics_router.routes)
    paths = {"exporter": set(_ROUTES), "report": {getattr(each, "path", "") for each in routes}}
    seen = {}
    for _, pod in pods(case):
        for container in pod["containers"]:
            for port in container.get("ports", []):
                seen[port["name"]] = port["containerPort"]
                for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                    request = container[probe]["httpGet"]
                    assert request["port"] == port["name"]
                    assert request["path"] in paths[port["name"]] >= {"/metrics"}
    assert seen == PORTS
    for each in rendering(case):
        spec = each.get("spec", {})
        if each["kind"] == "Service":
            assert {port["name"]: port["port"] for port in spec["ports"]}.items() <= PORTS.items()
        elif each["kind"] == "NetworkPolicy":
            assert [port["port"] for port in spec["ingress"][0]["ports"]] == list(PORTS.values())
        elif each["kind"] in {"PodMonitor", "ServiceMonitor"}:
            endpoints = spec.get("podMetricsEndpoints") or spec["endpoints"]
            assert {endpoint["port"] for endpoint in endpoints} <= PORTS.keys()


@cases
def test_command_line_parses_and_variables_and_images_exist(
    case: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    documented = (ROOT / "docs" / "image.md").read_text(encoding="utf-8")
    for name, pod in pods(case):
        (container,) = pod["containers"]
        for variable in container.get("env", []):
            own = variable["name"].startswith("MM2SLO_")
            assert not own or f"`{variable['name']}`" in documented
        if name == "executor":
            continue
        target = "mm2slo-audit" if name == "mm2slo-audit" else "mm2slo"
        assert container["image"] == f"{target}:{PROJECT['version']}"
        monkeypatch.setattr("sys.argv", ["mm2slo", *container["args"], "--help"])
        with suppress(SystemExit):
            main()
        assert not capsys.readouterr().err


@cases
def test_configuration_is_valid(case: str, tmp_path: Path) -> None:
    (data,) = (
        each["data"]
        for each in rendering(case)
        if each["kind"] == "ConfigMap" and "mm2slo.yaml" in each.get("data", {})
    )
    data.setdefault(
        "mirrormaker2.yaml", (FOLDER / "examples" / "mirror.yaml").read_text(encoding="utf-8")
    )
    for name, text in data.items():
        local = text.replace("/etc/mm2slo", str(tmp_path))
        local = local.replace("/run/secrets/mm2slo", str(tmp_path / "secrets"))
        (tmp_path / name).write_text(local, encoding="utf-8")
    authority = trustme.CA()
    user = authority.issue_cert("mm2slo")
    secret = {
        "ca.crt": authority.cert_pem.bytes(),
        "user.crt": user.cert_chain_pems[0].bytes(),
        "user.key": user.private_key_pem.bytes(),
        "password": b"x",
    }
    mounts = dict(pods(case))["mm2slo-exporter"]["containers"][0]["volumeMounts"]
    for mount in mounts:
        if mount["mountPath"].startswith("/run/secrets/"):
            folder = tmp_path / "secrets" / mount["mountPath"].rpartition("/")[2]
            folder.mkdir(parents=True)
            for key, content in secret.items():
                (folder / key).write_bytes(content)
    config = load_source(ConfigSource(config=tmp_path / "mm2slo.yaml"))[0]
    own = {"tenant-a": "a-us->a-eu", "tenant-b": "b-us->b-eu"}
    assert [flow.flow.label for flow in config.flows] == [own.get(case, "us->eu")]
    assert config.alerting.namespace == namespace(case)
    if case in own:
        _check_tenant(case.removeprefix("tenant-"), config)


def _check_tenant(tenant: str, config: Config) -> None:
    """The example's users may do what this configuration needs, and reach no other tenant."""
    (flow,) = config.flows
    resources = FlowResources(
        flow.flow,
        DefaultPolicy(),
        flow.topics,
        flow.groups,
        internal_topics(flow.flow, DefaultPolicy()),
        canary_topic=flow.canary.topic,
        leases_instance=True,
        state_topic=config.exporter.state.topic,
        timeline_topic=config.exporter.timeline.topic,
        arrivals_topic=config.exporter.timeline.arrivals_topic,
    )
    path = FOLDER / "examples" / f"tenant-{tenant}-users.yaml"
    granted = {
        AclGrant(
            f"{tenant}-{user['metadata']['labels']['strimzi.io/cluster']}",
            acl["resource"]["type"],
            AclPattern(acl["resource"]["name"], acl["resource"]["patternType"] == "prefix"),
            operation,
        )
        for user in yaml.safe_load_all(path.read_text(encoding="utf-8"))
        for acl in user["spec"]["authorization"]["acls"]
        for operation in acl["operations"]
    }
    needed = least_grants(resources, "exporter", "audit")
    assert [each for each in needed if not any(implies(grant, each) for grant in granted)] == []
    other = "ba"["ab".index(tenant)]
    names = {"topic": (f"{other}.x", f"{other}-us.{other}.x", f"mm2slo-{other}.state.internal",
             f"mm2-offset-syncs.{other}-eu.internal"), "group": (f"{other}.x",)}  # fmt: skip
    found = [
        grant
        for grant in granted
        for name in names[grant.kind]
        if grant.pattern.covers(AclPattern(name))
    ]
    assert found == []


@needs_definitions
@pytest.mark.parametrize("tenant", ["a", "b"])
def test_users_of_tenants_match_their_definition(tenant: str) -> None:
    path = FOLDER / "examples" / f"tenant-{tenant}-users.yaml"
    assert schema_errors(path.read_text(encoding="utf-8")) == []


def test_chart_refuses_a_value_of_every_secret_field() -> None:
    helpers = (CHART / "templates" / "_helpers.tpl").read_text(encoding="utf-8")
    (pattern,) = re.findall(r'isSecret := regexMatch "(.*)" \$key', helpers)
    sections = [Section]
    for section in sections:
        sections += section.__subclasses__()
    names = {
        name
        for section in sections
        for name, field in section.model_fields.items()
        if Secret in {field.annotation, *get_args(field.annotation)}
    }
    names -= {"client", "store"}  # keys of librdkafka; a URL, whose password is refused
    assert {"password", "hmac_key", "client_secret"} <= names
    assert [name for name in names if not re.search(pattern.replace("\\\\", "\\"), name)] == []


def test_chart_has_version_and_images_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["version"] == chart["appVersion"] == PROJECT["version"]
    images = yaml.safe_load(chart["annotations"]["artifacthub.io/images"])
    assert {image["image"] for image in images} == {
        f"{name}:{PROJECT['version']}" for name in ("mm2slo", "mm2slo-audit")
    }


def test_every_query_selects_the_namespace() -> None:
    rules = yaml.safe_load((CHART / "files" / "prometheusrule.yaml").read_text(encoding="utf-8"))
    every = [rule for group in rules["spec"]["groups"] for rule in group["rules"]]
    assert {rule["labels"]["namespace"] for rule in every} == {PLACEHOLDER}
    texts = {rule.get("alert", rule.get("record")): rule["expr"] for rule in every}
    for board in (CHART / "files" / "dashboards").glob("*.json"):
        found = re.findall(r'"(?:expr|query)": ("(?:[^"\\]|\\.)*")', board.read_text("utf-8"))
        texts |= {f"{board.name} {index}": json.loads(text) for index, text in enumerate(found)}
    names = "|".join(sorted(NAMESPACED, key=len, reverse=True))
    selector = re.compile(
        rf"(?<![\w:$\"`])(?:{names})(?![\w:])(?!\{{.*?namespace=\"{PLACEHOLDER}\")"
    )
    assert {name: text for name, text in texts.items() if selector.search(text)} == {}


@needs_promtool
def test_rules_of_two_releases_do_not_mix(tmp_path: Path) -> None:
    text = (CHART / "files" / "prometheusrule.yaml").read_text(encoding="utf-8")
    for name in ("a", "b"):
        spec = yaml.safe_load(text.replace(PLACEHOLDER, name))["spec"]
        (tmp_path / f"{name}.yml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    labels = 'flow="us->eu",source="us",target="eu",sli="availability",tier="all"'
    increase = "flow:mm2_sli_events:increase5m"
    inputs = [
        {"series": f'mm2_sli_events_total{{namespace="{name}",instance="x",{labels}}}',
         "values": f"0+{step}x60"} for name, step in (("a", 1), ("b", 3))
    ]  # fmt: skip
    inputs += [
        {"series": f'up{{job="mm2slo",namespace="{name}",instance="x"}}', "values": f"{up}x60"}
        for name, up in (("a", 1), ("b", 0))
    ]
    expressions = {
        f"sum by (namespace) ({increase})": {"a": 10, "b": 30},
        'count by (namespace) (ALERTS{alertname="MM2ExporterDown", alertstate="firing"})': {"b": 1},
    }
    expected = [
        {"expr": expr, "eval_time": "25m", "exp_samples": [
            {"labels": f'{{namespace="{name}"}}', "value": value} for name, value in found.items()
        ]} for expr, found in expressions.items()
    ]  # fmt: skip
    test = {"interval": "30s", "input_series": inputs, "promql_expr_test": expected}
    document = {"rule_files": ["a.yml", "b.yml"], "evaluation_interval": "30s", "tests": [test]}
    (tmp_path / "test.yml").write_text(yaml.safe_dump(document), encoding="utf-8")
    run_rule_tests(tmp_path / "test.yml")
