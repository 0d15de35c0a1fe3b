"""The Helm chart, installed on a kube-apiserver under Pod Security `restricted`."""

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml
from helm_chart import CASES, CHART, FOLDER, example_values
from kube_apiserver import KubeApiServer, kube_apiserver
from strimzi_schemas import FOLDER as DEFINITIONS
from strimzi_schemas import KubernetesLoader, needs_definitions

from mm2slo_audit.spark.spark_properties import SparkOptions
from mm2slo_audit.spark.spark_session import spark_session
from mm2slo_lab.managed_process import HOST, wait_for

pytestmark = [pytest.mark.deploy, needs_definitions]

# Kinds of OpenShift and of Grafana's operator, whose definitions are not at hand.
WITHOUT_DEFINITIONS = ("--set", "route.enabled=false,grafanaDashboards.operator=false")
NUMBERS = count(1)


@pytest.fixture(scope="module")
def kube() -> Iterator[KubeApiServer]:
    with kube_apiserver() as server:
        for path in sorted(DEFINITIONS.glob("*.yaml")):
            if path.name.startswith("monitoring.") or path.stem.endswith("-v1"):
                (definition,) = yaml.load_all(path.read_text("utf-8"), KubernetesLoader)
                assert server.apply(definition).ok
        priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1000}
        assert server.apply({**priority, "metadata": {"name": "monitoring"}}).ok
        wait_for(lambda: server.request("GET", "/apis/monitoring.coreos.com/v1").ok, "definitions")
        yield server


@pytest.fixture
def namespace(kube: KubeApiServer) -> str:
    """A new namespace that enforces Pod Security `restricted`."""
    name = f"replication-{next(NUMBERS)}"
    metadata = {"name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}
    answer = kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    assert answer.ok, answer.text
    return name


def options(case: str, namespace: str) -> tuple[str | Path, ...]:
    own = ("mm2slo", CHART, "--namespace", namespace)
    return (*own, *example_values(case), *WITHOUT_DEFINITIONS)


def install(kube: KubeApiServer, case: str, namespace: str) -> None:
    done = kube.helm("install", *options(case, namespace))
    assert done.returncode == 0, done.stderr
    assert "would violate PodSecurity" not in done.stderr


def pod_templates(kube: KubeApiServer, namespace: str) -> dict[str, dict[str, Any]]:
    """The pods that controllers would create, by component."""
    found = {}
    for path in ("apps/v1", "batch/v1"):
        for plural in ("statefulsets", "deployments") if path == "apps/v1" else ("cronjobs",):
            for each in kube.get(f"/apis/{path}/namespaces/{namespace}/{plural}")["items"]:
                spec = each["spec"].get("jobTemplate", {}).get("spec", each["spec"])
                name = each["metadata"]["name"]
                template = spec["template"]
                template["metadata"] = {"name": name, "labels": template["metadata"]["labels"]}
                found[name] = {"apiVersion": "v1", "kind": "Pod", **template}
    return found


@pytest.mark.parametrize("case", CASES)
def test_example_is_installed_upgraded_and_removed(
    kube: KubeApiServer, namespace: str, case: str
) -> None:
    install(kube, case, namespace)
    installed = kube.objects(namespace)
    assert {"StatefulSet", "Deployment", "Service", "ConfigMap"} <= installed.keys()
    for name, pod in pod_templates(kube, namespace).items():
        answer = kube.apply(pod, namespace)
        assert answer.ok, f"{name}: {answer.text}"
        assert answer.json()["status"]["phase"] == "Pending"
        kube.request(
            "DELETE",
            f"/api/v1/namespaces/{namespace}/pods/{name}",
            params={"gracePeriodSeconds": "0"},
        )
    upgrade = ("--set", "exporter.resources.limits.memory=1Gi,podLabels.team=x")
    done = kube.helm("upgrade", *options(case, namespace), *upgrade)
    assert done.returncode == 0, done.stderr
    assert kube.objects(namespace).keys() == installed.keys()
    pods = pod_templates(kube, namespace).values()
    assert {pod["metadata"]["labels"]["team"] for pod in pods} == {"x"}
    done = kube.helm("uninstall", "mm2slo", "--namespace", namespace)
    assert done.returncode == 0, done.stderr
    assert kube.objects(namespace) == {"PersistentVolumeClaim": ["mm2slo"]}  # the results store
    install(kube, case, namespace)  # uses it again


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("exporter.replica=2", "additional properties 'replica' not allowed"),
        ("exporter.resources.limits.memory=much", "quantities must match"),
        ("audit.enabled=true,audit.schedule=hourly", "spec.schedule"),
    ],
)
def test_wrong_value_is_refused_and_leaves_at_most_the_volume(
    kube: KubeApiServer, namespace: str, option: str, message: str
) -> None:
    done = kube.helm("install", *options("minimal", namespace), "--atomic", "--set", option)
    assert done.returncode != 0
    assert message in done.stderr
    assert kube.objects(namespace).keys() <= {"PersistentVolumeClaim"}  # which Helm keeps


def test_misspelt_field_of_kubernetes_is_named(kube: KubeApiServer, namespace: str) -> None:
    """Helm asks for warnings about unknown fields, and installs without them."""
    done = kube.helm(
        "install", *options("minimal", namespace), "--set", "podSecurityContext.runAsNonRot=true"
    )
    assert "spec.template.spec.securityContext.runAsNonRot" in done.stderr


def test_pod_that_may_gain_privileges_is_refused(kube: KubeApiServer, namespace: str) -> None:
    """The admission is real: what the chart's defaults prevent does not pass."""
    value = "securityContext.allowPrivilegeEscalation=true"
    done = kube.helm("install", *options("minimal", namespace), "--set", value)
    assert done.returncode == 0
    assert "would violate PodSecurity" in done.stderr
    answer = kube.apply(pod_templates(kube, namespace)["mm2slo-exporter"], namespace)
    assert answer.status_code == 403
    assert "allowPrivilegeEscalation" in answer.json()["message"]


@pytest.mark.parametrize("tenant", ["tenant-a", "tenant-b"])
def test_kafka_users_of_tenant_are_accepted(
    kube: KubeApiServer, namespace: str, tenant: str
) -> None:
    text = (FOLDER / "examples" / f"{tenant}-users.yaml").read_text("utf-8")
    for user in yaml.load_all(text, KubernetesLoader):
        user["metadata"].pop("namespace", None)
        answer = kube.apply(user, namespace)
        assert answer.ok, answer.text


def test_spark_driver_creates_executors_with_its_own_role(
    kube: KubeApiServer, namespace: str, tmp_path: Path
) -> None:
    install(kube, "complete", namespace)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    driver = pod_templates(kube, namespace)["mm2slo-audit"]
    assert kube.apply(driver, namespace).ok
    executor = kube.get(f"/api/v1/namespaces/{namespace}/configmaps/mm2slo-executor")
    (tmp_path / "executor.yaml").write_text(executor["data"]["executor.yaml"])
    (tmp_path / "token").write_text(kube.token(namespace, driver["spec"]["serviceAccountName"]))
    arguments = driver["spec"]["containers"][0]["args"]
    conf = dict(each.split("=", 1) for each in arguments if each.startswith("spark."))
    conf["spark.kubernetes.executor.podTemplateFile"] = str(tmp_path / "executor.yaml")
    conf["spark.kubernetes.driver.pod.name"] = driver["metadata"]["name"]
    conf["spark.driver.host"] = HOST
    # A pod finds both in /var/run/secrets/kubernetes.io/serviceaccount.
    conf["spark.kubernetes.authenticate.caCertFile"] = str(kube.ca_file)
    conf["spark.kubernetes.authenticate.oauthTokenFile"] = str(tmp_path / "token")

    with spark_session(SparkOptions(master=f"k8s://{kube.url}", conf=conf)):
        wait_for(lambda: len(kube.get(pods)["items"]) == 3, "two executors")
        executors = [
            each for each in kube.get(pods)["items"] if each["metadata"]["name"] != "mm2slo-audit"
        ]
    assert {each["status"]["phase"] for each in executors} == {"Pending"}
    for each in executors:
        (container,) = each["spec"]["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["image"] == "mm2slo-audit:0.1.0"
        assert "serviceaccount" not in json.dumps(container["volumeMounts"])
        assert each["metadata"]["ownerReferences"][0]["name"] == "mm2slo-audit"
    wait_for(lambda: len(kube.get(pods)["items"]) == 1, "executors to be deleted")
