"""Reads Strimzi's `KafkaMirrorMaker2`, also under the API group of IBM Event Streams.

IBM's `EventStreamsGeoReplicator` has no flows: its operator keeps them in a `KafkaMirrorMaker2`.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from mm2slo_core.config.config_problems import render_path, value_at
from mm2slo_core.config.yaml_document import Document, parse_documents
from mm2slo_core.mm2_config.findings import Origin
from mm2slo_core.mm2_config.mirror_setup import Form, MirrorSetup
from mm2slo_core.mm2_config.resource_text import ResourceText
from mm2slo_core.mm2_config.strimzi_resource import Resource
from mm2slo_core.mm2_config.strimzi_setup import strimzi_setup

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.config.config_problems import Path

_KIND: Final = "KafkaMirrorMaker2"
_GEO_REPLICATOR: Final = "EventStreamsGeoReplicator"
_API_VERSION: Final = re.compile(r"[a-z0-9.-]+/(v1|v1beta2|v1alpha1)")
# In a file that is YAML, other braces belong to other kinds, such as PrometheusRule.
_HELM: Final = (".Values", ".Release", ".Chart")


def read_strimzi(name: str, text: str) -> tuple[MirrorSetup, ...]:
    """Return a setup for each KafkaMirrorMaker2 in *text*, or one with the reason for none.

    *name* is the file name, for messages. Findings about the file are in the first setup.
    """
    file = ResourceText(name, Document())
    setups, replicators = [], []
    for document in _documents(file, text):
        for root, value in _resources(document.value):
            resource = ResourceText(name, document, root)
            kind = value_at(value, ("kind",))
            if kind == _KIND:
                setups.append(_read_resource(resource, value))
            elif kind == _GEO_REPLICATOR:
                replicators.append((resource, value))
            else:
                what = f"skipped {kind}" if isinstance(kind, str) else "skipped a document"
                file.report("skipped-kind", resource.origin(("kind",)), what)
    if not setups:
        for resource, value in replicators:
            _report_replicator(file, resource, value)
        if not any(finding.is_error for finding in file.findings):
            file.report("no-mirror-maker", (), f"the file has no {_KIND}")
    first, *others = setups or [MirrorSetup(Form.STRIMZI, {}, ())]
    return (replace(first, findings=(*file.findings, *first.findings)), *others)


def _documents(file: ResourceText, text: str) -> list[Document]:
    """The documents of *text*; templates are seldom YAML before they are rendered."""
    documents = parse_documents(text)
    problems = [problem for document in documents for problem in document.problems]
    lines = (line.partition("#")[0] for line in text.split("\n"))
    templates = [
        str(number)
        for number, line in enumerate(lines, 1)
        if "{{" in line and (problems or any(name in line for name in _HELM))
    ]
    if templates:
        shown = ", ".join(templates[:10]) + (", ..." if len(templates) > 10 else "")
        origin = Origin(file.file, int(templates[0]))
        file.report("template", origin, f"has template placeholders {{{{ }}}} on line {shown}")
        return []
    for problem in problems:
        what, action = f"{problem.path} {problem.what}", problem.next_step or ""
        file.report("invalid-yaml", Origin(file.file, problem.line), what, action)
    return documents


def _resources(value: object) -> Iterator[tuple[Path, object]]:
    items = value_at(value, ("items",))
    if isinstance(items, list):
        yield from ((("items", index), item) for index, item in enumerate(items))
    elif value is not None:
        yield (), value


def _report_replicator(file: ResourceText, resource: ResourceText, value: object) -> None:
    # The operator gives both resources the name of the Event Streams instance.
    named = ((" ", "name"), (" -n ", "namespace"))
    texts = ((option, value_at(value, ("metadata", key))) for option, key in named)
    which = "".join(option + shlex.quote(text) for option, text in texts if isinstance(text, str))
    file.report(
        "geo-replicator", resource.origin(("kind",)), f"an {_GEO_REPLICATOR} has no flows",
        f"pass the output of: oc get kafkamirrormaker2.eventstreams.ibm.com{which} -o yaml",
    )  # fmt: skip


def _read_resource(resource: ResourceText, value: object) -> MirrorSetup:
    api_version = value_at(value, ("apiVersion",))
    version = _API_VERSION.fullmatch(str(api_version))
    if version is None:
        what = f"unknown apiVersion {api_version}"
        what = what if isinstance(api_version, str) else "no apiVersion"
        resource.report("unknown-api-version", ("apiVersion",), what)
        return MirrorSetup(Form.STRIMZI, {}, (), tuple(resource.findings))
    try:
        return strimzi_setup(resource, Resource.model_validate(value).spec, version[1])
    except ValidationError as invalid:
        for error in invalid.errors(include_input=False, include_url=False):
            path = error["loc"]
            if error["type"] == "missing":
                resource.require(path[:-1], str(path[-1]))
            else:
                what = f"{render_path(path)} has a wrong value"
                is_text = error["type"] == "model_type"
                action = "expected a mapping" if is_text else error["msg"]
                resource.report("invalid-value", path, what, action)
    return MirrorSetup(Form.STRIMZI, {}, (), tuple(resource.findings))
