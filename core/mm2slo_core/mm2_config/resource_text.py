"""A Kubernetes resource in a YAML file: where its values are, and what was found in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mm2slo_core.config.config_problems import render_path
from mm2slo_core.mm2_config.findings import Finding, Origin, Severity
from mm2slo_core.mm2_config.mirror_setup import Setting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.config.config_problems import Path
    from mm2slo_core.config.yaml_document import Document

_REFUSED: Final = "the operator refuses the resource"
# Checks with why they matter and what to do, unless a finding has its own action.
_ERRORS: Final = {
    "invalid-yaml": ("the file cannot be read reliably", "correct the syntax"),
    "template": ("its value is only known after rendering", "pass the output of helm template"),
    "no-mirror-maker": (
        "no other kind has flows", "pass the output of: kubectl get kafkamirrormaker2 -o yaml"
    ),
    "unknown-api-version": (
        "the layout differs between versions", "use kafka.strimzi.io/v1, v1beta2 or v1alpha1"
    ),
    "geo-replicator": ("its operator keeps them in a KafkaMirrorMaker2", ""),
    "missing-key": (_REFUSED, ""),
    "invalid-value": (_REFUSED, ""),
    "removed-key": ("Strimzi ignores it", ""),
    "duplicate-alias": (
        _REFUSED, "give each cluster its own alias, and each pair of clusters one mirror"
    ),
    "unknown-cluster": (_REFUSED, ""),
    "invalid-flow": (_REFUSED, "remove this mirror"),
    "unsupported-authentication": (
        "mm2slo reads tls, plain, scram-sha-256, scram-sha-512, custom, and oauth with a secret",
        "set clusters.<alias>.security in mm2slo.yaml",
    ),
}  # fmt: skip
_OTHERS: Final = {
    "unknown-key": ("Strimzi ignores it", "remove it"),
    "ignored-key": ("Strimzi ignores it", "remove it"),
    "skipped-kind": ("mm2slo reads KafkaMirrorMaker2", "no action is needed"),
}


@dataclass(frozen=True, slots=True)
class ResourceText:
    """*root* is the path of the resource in *document*; other paths start there."""

    file: str
    document: Document
    root: Path = ()
    findings: list[Finding] = field(default_factory=list)

    def origin(self, path: Path) -> Origin:
        return Origin(self.file, self.document.line_of((*self.root, *path)))

    def report(self, check: str, place: Path | Origin, what: str, action: str = "") -> None:
        severity = Severity.ERROR if check in _ERRORS else Severity.WARNING
        severity = Severity.INFO if check == "skipped-kind" else severity
        why, usual_action = (_ERRORS | _OTHERS)[check]
        origin = place if isinstance(place, Origin) else self.origin(place)
        self.findings.append(Finding(check, severity, origin, what, why, action or usual_action))

    def require(self, path: Path, *keys: str) -> None:
        """Report that *keys* are missing at *path*, unless no key is given."""
        if keys:
            names = ", ".join(keys)
            self.report("missing-key", path, f"{render_path(path)} has no {names}", f"add {names}")

    def place(self, values: Mapping[str, str], path: Path) -> dict[str, Setting]:
        """Settings that all come from *path*."""
        key, origin = str(path[-1]), self.origin(path)
        return {name: Setting(key, value, origin) for name, value in values.items()}

    def settings(self, config: Mapping[str, object] | None, path: Path) -> dict[str, Setting]:
        """A `config` mapping as Kafka sees it; null is absent, as for Kubernetes."""
        found = {}
        for key, value in (config or {}).items():
            if isinstance(value, dict | list):
                what = f"{key} is not text, a number or a boolean"
                self.report("invalid-value", (*path, key), what, "write lists as one text: a,b")
            elif value is not None:
                text = str(value).lower() if isinstance(value, bool) else str(value)
                found[key] = Setting(key, text, self.origin((*path, key)))
        return found
