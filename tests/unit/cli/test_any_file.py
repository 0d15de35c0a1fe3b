"""No command prints a traceback, whatever MirrorMaker 2's files contain."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from generated_mirror_setups import EXAMPLE
from hypothesis import given
from hypothesis import strategies as st

if TYPE_CHECKING:
    Run = Callable[[str], tuple[int, str, str]]

PROPERTIES: Final = (
    EXAMPLE.decode()
    + """\
offset.storage.topic = mm2-offsets
eu.status.storage.topic = mm2-status
eu.offset.flush.interval.ms = 10000
topics.exclude = x.*
us->eu.groups = g.*
us->eu.replication.policy.separator = _
us->eu.emit.checkpoints.interval.seconds = 30
us->eu.replication.factor = 2
"""
)
STRIMZI: Final = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata: {name: mirror}
spec:
  version: 4.1.0
  target:
    alias: eu
    bootstrapServers: eu-1:9092
    groupId: mirror
    offsetStorageTopic: mirror-offsets
    configStorageTopic: mirror-configs
    statusStorageTopic: mirror-status
    tls: {trustedCertificates: [{secretName: eu-ca, pattern: "*.crt"}]}
    config:
      offset.flush.interval.ms: 10000
  mirrors:
    - source:
        alias: us
        bootstrapServers: us-1:9092
        authentication:
          type: scram-sha-512
          username: mm2
          passwordSecret: {secretName: user, password: password}
      topicsPattern: orders.*
      groupsPattern: shop.*
      sourceConnector:
        tasksMax: 2
        state: running
        config:
          replication.factor: 3
          replication.policy.separator: _
      checkpointConnector:
        config:
          emit.checkpoints.interval.seconds: 30
"""
CONNECT: Final = """\
{
"name": "mirror",
"config": {
"connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
"source.cluster.alias": "us",
"source.cluster.bootstrap.servers": "us-1:9092",
"target.cluster.alias": "eu",
"target.cluster.bootstrap.servers": "eu-1:9092",
"offsets.storage.topic": "own-offsets",
"topics": "orders.*",
"tasks.max": "3"
}
}
"""
WORKER: Final = """\
bootstrap.servers = eu-1:9092
group.id = mirror
offset.storage.topic = mirror-offsets
config.storage.topic = mirror-configs
status.storage.topic = mirror-status
offset.flush.interval.ms = 10000
"""
FORMS: Final = {"mm2": PROPERTIES, "strimzi": STRIMZI, "connect-json": CONNECT}
VALUES: Final = (
    "${CLUSTER}-offsets", "mm2 offsets", "${file:/etc/mm2/names.properties:offsets}", "", " ",
    "-1", "${env:X}-${", "${secret:a:b*}", "${dir:/:..}", "..", ",", "a,,b", "[", "(?<x>",
    "a{2,3}", "x" * 300, "9" * 400, "0", "1.5", "true # on", '"x"', "\\ud800", "\\u001b[31m",
    "\\", "é", "->", "us->us", "us", "null", "~", "{}", "[]", "[[]]", "{a: 1}", "1e999", ".nan",
    "2026-01-01", "*a", "&a x", "!!int x", "!!binary x", "<<", "|", ">-", "'", "\t", "\x00",
    "\x85", "\u2028", "http://u:p@h", "PLAIN required;", "-----BEGIN CERTIFICATE-----",
    "com.example.Class", "SASL_SSL", "GSSAPI", "AWS_MSK_IAM", "none",
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn, text: str) -> bytes:
    lines = text.splitlines()
    values = st.sampled_from(VALUES) | st.text(max_size=8)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        head = re.match(r'\s*(?:- )?"?[\w.>-]+"?\s*[=:]\s*', lines[at])
        how = draw(
            st.sampled_from(["value", "value", "value", "json", "delete", "repeat", "insert"])
        )
        if how in {"value", "json"} and head:
            value = draw(values)
            quoted = '"' + value.replace('"', '\\"') + '",' if how == "json" else value
            lines[at] = head[0] + quoted
        elif how == "delete" and len(lines) > 1:
            del lines[at]
        elif how == "repeat":
            lines.insert(draw(st.integers(0, len(lines))), lines[at])
        else:
            column = draw(st.integers(0, len(lines[at])))
            lines[at] = lines[at][:column] + draw(values) + lines[at][column:]
    return "\n".join(lines).encode(errors="surrogatepass")


def commands(form: str) -> Iterator[str]:
    """All commands that read *form*, with the file `file`, and the file that it was made from."""
    worker = " --worker worker.properties" if form == "connect-json" else ""
    yield from (f"lint file{worker}", f"lint file --json{worker}")
    yield from (f"diff file {form}", "diff file file --topics names")
    for target in ("properties", "strimzi", "connect-json", "acls", "kafka-users"):
        yield f"render file --to {target}{worker}"
    yield f"init --force --from file{' --from worker.properties' if worker else ''}"
    yield from (f"check --{form} file{worker}", "check --config mm2slo.yaml --json")
    yield f"slo export --{form} file{worker}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in FORMS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "names").write_text("orders\nshop\n", encoding="utf-8")
    (tmp_path / "worker.properties").write_text(WORKER, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_commands_any_file_give_an_exit_code_and_no_traceback(
    form: str, data: st.DataObject, mm2slo: Run, folder: Path
) -> None:
    (folder / "file").write_bytes(data.draw(mutated(FORMS[form])))
    if form == "connect-json":
        (folder / "worker.properties").write_bytes(data.draw(mutated(WORKER)))
    for command in commands(form):
        code, out, err = mm2slo(command)
        assert code in {0, 1, 2}, command
        # What is printed can be encoded.
        (out + err).encode()


@pytest.mark.parametrize(
    "value", ["${CLUSTER}-offsets", "mm2 offsets", "${file:/etc/mm2/names.properties:offsets}"]
)
def test_commands_worker_topic_without_a_valid_name_print_one_problem(
    value: str, mm2slo: Run, folder: Path
) -> None:
    text = PROPERTIES.replace("= mm2-offsets", f"= {value}")
    (folder / "file").write_text(text, encoding="utf-8")
    code, out, err = mm2slo("diff file file")
    assert (code, err) == (0, "")
    assert out.startswith("no differences in what is copied\nnote: file:")
    code, _, err = mm2slo("check --mm2 file")
    assert code == 2
    is_reference = value.startswith("${file")
    assert ("is not a topic name" in err) == (not is_reference)
    assert ("names.properties:offsets} in offset.storage.topic cannot be resolved" in err) == (
        is_reference
    )
