"""Hypothesis strategies for configurations of MirrorMaker 2, and what their references refer to."""

from collections.abc import Mapping
from functools import cache
from itertools import permutations

import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from hypothesis import strategies as st

from mm2slo_core.config.client_security import LOGIN_MODULES, OAUTH_HANDLER, Mechanism, jaas_quote
from mm2slo_core.file_syntax import dump_properties
from mm2slo_core.mm2_config.connector_settings import connector_key
from mm2slo_core.mm2_config.mirror_setup import (
    Connector,
    ConnectorKind,
    Form,
    MirrorCluster,
    MirrorFlow,
    MirrorSetup,
    Origin,
    ProviderKind,
    Setting,
    Worker,
)
from mm2slo_core.mm2_config.provider_references import PROVIDER_CLASSES, MirrorFiles
from mm2slo_core.replication_policy import connect_topic
from mm2slo_core.topology import Flow

# Also what needs an escape in JAAS, YAML, JSON or properties.
PASSWORD = 'Tr0ub4dor\\"&: #3=é'
STORE_PASSWORD = "ch4ngeIt!"

EXAMPLE = rb"""
clusters = us, eu, ap
us.bootstrap.servers = us-1:9093,us-2:9093
us.security.protocol = SASL_SSL
us.sasl.mechanism = SCRAM-SHA-512
us.sasl.jaas.config = org.apache.kafka.common.security.scram.ScramLoginModule required \
  username="mm2" password="s3cret-one";
us.ssl.truststore.location = /opt/us.p12
us.ssl.truststore.password = s3cret-two
eu.bootstrap.servers = eu-1:9093
eu.security.protocol = SSL
eu.ssl.keystore.location = /opt/eu.p12
eu.ssl.keystore.password = ${env:EU_STORE}
eu.ssl.truststore.certificates = ${file:/opt/eu.properties:ca}
ap.bootstrap.servers = ap-1:9092
ap.security.protocol = SASL_PLAINTEXT
ap.sasl.mechanism = OAUTHBEARER
ap.sasl.login.callback.handler.class = \
  org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler
ap.sasl.oauthbearer.token.endpoint.url = https://id.example.com/token
ap.sasl.jaas.config = org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule \
  required clientId="mm2" clientSecret="s3cret-three";
config.providers = env,file
config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider
config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider
us->eu.enabled = true
us->eu.topics = orders.*, payments
us->eu.sync.group.offsets.enabled = true
ap->eu.enabled = true
ap->eu.tasks.max = 3
emit.heartbeats.enabled = false
us->eu.emit.heartbeats.enabled = true
eu.producer.linger.ms = 5
"""
"""Two flows; the passwords start with s3cret."""
_PROVIDERS = {"env": ProviderKind.ENV, "file": ProviderKind.FILE, "dir": ProviderKind.DIRECTORY}

_SETTINGS = {
    "topics": ["orders.*", r"a\.b, c", ".*"],
    "topics.exclude": [r".*\.replica"],
    "groups": ["shop-.*", "a|b"],
    "groups.exclude": ["x"],
    "tasks.max": ["1", "12"],
    "replication.factor": ["3", "-1"],
    "replication.policy.class": ["org.apache.kafka.connect.mirror.IdentityReplicationPolicy"],
    "replication.policy.separator": ["_", "#"],
    "offset-syncs.topic.location": ["target"],
    "sync.group.offsets.enabled": ["true", "false"],
    "refresh.topics.interval.seconds": ["007", "30"],
    "transforms": ["r"],
    "transforms.r.password": [PASSWORD, "${env:X}"],
    "source.consumer.fetch.max.bytes": ["1048576"],
    "source.consumer.sasl.login.class": ["com.example.Login"],
    "producer.override.linger.ms": ["5"],
}

_WORKER = {
    "offset.flush.interval.ms": ["10000"],
    "exactly.once.source.support": ["enabled"],
    "key.converter": ["org.apache.kafka.connect.json.JsonConverter"],
    "key.converter.basic.auth.user.info": [f"user:{PASSWORD}"],
}


@cache
def material() -> Mapping[str, str]:
    """What secrets contain, by the keys of rendered files; binary files are in Latin-1."""
    authority = trustme.CA()
    own = authority.issue_cert("mm2@example.com")
    key = load_pem_private_key(own.private_key_pem.bytes(), None)
    locked = BestAvailableEncryption(STORE_PASSWORD.encode())
    ca = x509.load_pem_x509_certificate(authority.cert_pem.bytes())
    leaf = x509.load_pem_x509_certificate(own.cert_chain_pems[0].bytes())
    stores = (
        pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(ca, b"ca")], locked),
        pkcs12.serialize_key_and_certificates(b"mm2", key, leaf, None, locked),  # type: ignore[arg-type]
    )
    secrets = dict.fromkeys(("password", "clientSecret"), jaas_quote(PASSWORD)[1:-1])
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return secrets | {
        "ca.crt": authority.cert_pem.bytes().decode(),
        "tls.crt": own.cert_chain_pems[0].bytes().decode(),
        **dict.fromkeys(("tls.key", "ssl.keystore.key"), pem),
        "trust.p12": stores[0].decode("latin-1"),
        "own.p12": stores[1].decode("latin-1"),
        **dict.fromkeys(("ssl.truststore.password", "ssl.keystore.password"), STORE_PASSWORD),
    }


def _content(path: str) -> bytes:
    if path.endswith(".properties"):
        return dump_properties(material()).encode()
    key = path.rpartition("/")[2]
    return material()[key].encode("latin-1" if key.endswith(".p12") else "utf-8")


FILES = MirrorFiles(
    environment=material().__getitem__,
    content=_content,
    secret=lambda _, key: material()[key].encode(),
)


def _settings(values: Mapping[str, str]) -> dict[str, Setting]:
    return {key: Setting(key, value, Origin("mm2", 7)) for key, value in values.items()}


@st.composite
def _value(draw: st.DrawFn, key: str) -> str:
    """A secret in plain text, or a reference to it."""
    references = (f"${{env:{key}}}", f"${{file:/opt/all.properties:{key}}}", f"${{dir:/opt:{key}}}")
    return draw(st.sampled_from([material()[key], *references]))


@st.composite
def _tls(draw: st.DrawFn) -> dict[str, str]:
    trust, own = draw(st.sampled_from("npf")), draw(st.sampled_from("npf"))
    client = {}
    if trust == "p":
        client = {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": draw(_value("ca.crt")),
        }
    if trust == "f":
        password = draw(_value("ssl.truststore.password"))
        client = {"ssl.truststore.location": "/opt/trust.p12", "ssl.truststore.password": password}
    if own == "p":
        client |= {"ssl.keystore.type": "PEM", "ssl.keystore.key": draw(_value("tls.key"))}
        client["ssl.keystore.certificate.chain"] = draw(_value("tls.crt"))
    if own == "f":
        client["ssl.keystore.location"] = "/opt/own.p12"
        client["ssl.keystore.password"] = draw(_value("ssl.keystore.password"))
    if draw(st.booleans()):
        client["ssl.endpoint.identification.algorithm"] = ""
    return client


@st.composite
def _sasl(draw: st.DrawFn) -> dict[str, str]:
    mechanisms = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
    mechanism = Mechanism(draw(st.sampled_from(mechanisms)))
    names = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), min_size=1)
    user = jaas_quote(draw(names.filter(lambda name: "${" not in name)))
    keys = ("username", "password")
    client = {"sasl.mechanism": mechanism.value}
    if mechanism is Mechanism.OAUTHBEARER:
        keys = ("clientId", "clientSecret")
        client["sasl.oauthbearer.token.endpoint.url"] = "https://id.example.com/token"
        client["sasl.login.callback.handler.class"] = OAUTH_HANDLER
    options = f'{keys[0]}={user} {keys[1]}="{draw(_value(keys[1]))}"'
    return client | {"sasl.jaas.config": f"{LOGIN_MODULES[mechanism]} required {options};"}


@st.composite
def _client(draw: st.DrawFn, alias: str) -> dict[str, Setting]:
    protocol = draw(st.sampled_from(["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]))
    client = {"bootstrap.servers": f"{alias}:9092", "security.protocol": protocol}
    if "SASL" in protocol:
        client |= draw(_sasl())
    return _settings(client | (draw(_tls()) if protocol.endswith("SSL") else {}))


@st.composite
def setups(draw: st.DrawFn, form: Form) -> MirrorSetup:
    """A setup of which *form* can say everything."""
    aliases = draw(st.lists(st.sampled_from(["us", "eu", "ap_1", "b-2"]), min_size=2, unique=True))
    pairs = [Flow(*each) for each in permutations(aliases, 2)]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    providers = {"config.providers": "env, file,dir"} | {
        f"config.providers.{name}.class": PROVIDER_CLASSES[kind]
        for name, kind in _PROVIDERS.items()
    }
    workers = {alias: _settings(providers | draw(_some(_WORKER))) for alias in aliases}
    flows = [draw(_flow(each, form, workers[each.target])) for each in sorted(chosen)]
    clusters = {
        alias: MirrorCluster(alias, draw(_client(alias)), Origin("mm2", 1)) for alias in aliases
    }
    return MirrorSetup(form, clusters, tuple(flows), (), _PROVIDERS)


@st.composite
def _flow(draw: st.DrawFn, flow: Flow, form: Form, worker: Mapping[str, Setting]) -> MirrorFlow:
    settings = _settings(draw(_some(_SETTINGS)))
    kinds, state, enabled = [ConnectorKind.SOURCE], "running", True
    if draw(st.booleans()):
        kinds.append(ConnectorKind.CHECKPOINT)
    if form is Form.STRIMZI:
        state = draw(st.sampled_from(["running", "paused", "stopped"]))
    elif draw(st.booleans()):
        enabled = draw(st.booleans())
        kinds = [*kinds, ConnectorKind.HEARTBEAT] if enabled else [ConnectorKind.HEARTBEAT]
    connectors = {
        kind: Connector(
            kind,
            kind.value if form is Form.PROPERTIES else f"{flow}.{kind}",
            {key: each for key, each in settings.items() if _acts(key, kind)},
            Origin("mm2", 9),
            state,
        )
        for kind in kinds
    }
    names = [f"{flow.target}-{name}" for name in ("group", "offsets", "status", "configs")]
    if form is Form.PROPERTIES:
        topics = [connect_topic(kind, flow.source) for kind in ("offsets", "status", "configs")]
        names = [f"{flow.source}-mm2", *topics]
    group, offsets, status, configs = names
    made = Worker(group, offsets, status, configs, worker)
    return MirrorFlow(flow, connectors, made, Origin("mm2", 9), enabled)


@st.composite
def _some(draw: st.DrawFn, settings: Mapping[str, list[str]]) -> dict[str, str]:
    keys = draw(st.lists(st.sampled_from(sorted(settings)), unique=True, max_size=6))
    return {key: draw(st.sampled_from(settings[key])) for key in keys}


def _acts(key: str, kind: ConnectorKind) -> bool:
    entry = connector_key(key)
    return entry is None or kind in entry.kinds
