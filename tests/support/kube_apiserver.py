"""Runs a kube-apiserver with etcd: validation, admission and RBAC, no nodes and no controllers.

So objects are stored and checked, but no pod of a Deployment appears, and no pod starts.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import requests
import trustme
import yaml
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from mm2slo_lab.managed_process import HOST, ManagedProcess, ProcessSpec, accepts, free_ports

_ADMIN: Final = "admin-token"
_CLUSTER_WIDE: Final = {"Namespace", "CustomResourceDefinition", "PriorityClass"}


@dataclass(frozen=True, slots=True)
class KubeApiServer:
    """A running kube-apiserver."""

    url: str
    folder: Path

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of an administrator."""
        return self.folder / "kubeconfig"

    @property
    def ca_file(self) -> Path:
        """CA of its certificate."""
        return self.folder / "ca.crt"

    def request(self, method: str, path: str, **options: Any) -> requests.Response:
        """Answer to a request of an administrator, whatever its status."""
        headers = {"Authorization": f"Bearer {_ADMIN}"} | options.pop("headers", {})
        return requests.request(
            method,
            self.url + path,
            headers=headers,
            verify=str(self.ca_file),
            timeout=60,
            **options,
        )

    def get(self, path: str) -> dict[str, Any]:
        """Body of a GET."""
        answer = self.request("GET", path)
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found

    def apply(self, resource: dict[str, Any], namespace: str = "") -> requests.Response:
        """Answer to a server-side apply that refuses unknown and repeated fields."""
        group, kind = resource["apiVersion"], resource["kind"]
        root = f"/apis/{group}" if "/" in group else f"/api/{group}"
        (plural,) = (
            each["name"]
            for each in self.get(root)["resources"]
            if each["kind"] == kind and "/" not in each["name"]
        )
        scope = "" if kind in _CLUSTER_WIDE else f"/namespaces/{namespace}"
        return self.request(
            "PATCH",
            f"{root}{scope}/{plural}/{resource['metadata']['name']}",
            params={"fieldManager": "tests", "fieldValidation": "Strict", "force": "true"},
            headers={"Content-Type": "application/apply-patch+yaml"},
            data=json.dumps(resource),
        )

    def objects(self, namespace: str) -> dict[str, list[str]]:
        """Names of all objects in *namespace* by kind, except events.

        Also without objects that a controller would now delete, as volume claims have a finalizer.
        """
        found = {}
        groups = [
            version["groupVersion"]
            for group in self.get("/apis")["groups"]
            for version in group["versions"]
        ]
        for root in ("/api/v1", *(f"/apis/{group}" for group in groups)):
            for each in self.get(root)["resources"]:
                listed = each["namespaced"] and "list" in each["verbs"]
                if listed and each["kind"] not in {"Event", "Lease"}:
                    items = self.get(f"{root}/namespaces/{namespace}/{each['name']}")["items"]
                    found[each["kind"]] = [
                        item["metadata"]["name"]
                        for item in items
                        if "deletionTimestamp" not in item["metadata"]
                    ]
        return {kind: names for kind, names in found.items() if names}

    def token(self, namespace: str, account: str) -> str:
        """A token of a service account, as a pod has it."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer = self.request("POST", path, json=body)
        answer.raise_for_status()
        return str(answer.json()["status"]["token"])

    def helm(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run Helm as administrator."""
        return subprocess.run(
            (os.environ.get("HELM", "helm"), "--kubeconfig", self.kubeconfig, *arguments),
            capture_output=True,
            text=True,
            check=False,
        )


@contextmanager
def kube_apiserver() -> Iterator[KubeApiServer]:
    """Run etcd and kube-apiserver until the block ends."""
    binary = os.environ.get("KUBE_APISERVER")
    etcd = shutil.which("etcd")
    if binary is None or etcd is None:
        pytest.fail("kube-apiserver or etcd is missing: run `make test-deploy`, which builds it")
    folder = Path(tempfile.mkdtemp(prefix="mm2slo-kube-"))
    port, client_port, peer_port = free_ports(3)
    server = KubeApiServer(f"https://{HOST}:{port}", folder)
    store, peer = f"http://{HOST}:{client_port}", f"http://{HOST}:{peer_port}"
    _write_credentials(server)
    with ExitStack() as running:
        running.callback(shutil.rmtree, folder, ignore_errors=True)
        started = _start(
            running,
            folder,
            etcd,
            f"--data-dir={folder / 'etcd'}",
            f"--listen-client-urls={store}",
            f"--advertise-client-urls={store}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
        )
        started.wait_until(lambda: accepts(client_port), "ready")
        started = _start(
            running,
            folder,
            binary,
            f"--etcd-servers={store}",
            f"--bind-address={HOST}",
            f"--secure-port={port}",
            f"--tls-cert-file={folder / 'server.crt'}",
            f"--tls-private-key-file={folder / 'server.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={folder / 'accounts.pub'}",
            f"--service-account-signing-key-file={folder / 'accounts.key'}",
            f"--token-auth-file={folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
        )
        started.wait_until(lambda: _is_ready(server), "ready")
        yield server


def _start(running: ExitStack, folder: Path, *command: str) -> ManagedProcess:
    name = Path(command[0]).name
    process = ManagedProcess(ProcessSpec(name, command, folder / f"{name}.log"))
    process.start()
    running.callback(process.kill)
    return process


def _is_ready(server: KubeApiServer) -> bool:
    try:
        return server.request("GET", "/readyz").ok
    except requests.ConnectionError:
        return False


def _write_credentials(server: KubeApiServer) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert(HOST)
    authority.cert_pem.write_to_path(server.ca_file)
    certificate.cert_chain_pems[0].write_to_path(server.folder / "server.crt")
    certificate.private_key_pem.write_to_path(server.folder / "server.key")
    key = ec.generate_private_key(ec.SECP256R1())
    (server.folder / "accounts.key").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    )
    (server.folder / "accounts.pub").write_bytes(
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    (server.folder / "tokens.csv").write_text(f'{_ADMIN},admin,1,"system:masters"\n')
    cluster = {"server": server.url, "certificate-authority": str(server.ca_file)}
    context = {"cluster": "kube", "user": "admin"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "kube",
        "clusters": [{"name": "kube", "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": _ADMIN}}],
        "contexts": [{"name": "kube", "context": context}],
    }
    server.kubeconfig.write_text(yaml.safe_dump(config))
    server.kubeconfig.chmod(0o600)
