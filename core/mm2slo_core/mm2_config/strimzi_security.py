"""How MirrorMaker 2 reaches a cluster of Strimzi's `KafkaMirrorMaker2`, as Java client settings.

As Strimzi's `KafkaMirrorMaker2Connectors` writes them, but always PEM, and with references to the
secrets that the user named: `${secret:NAME:KEY}`, where a key such as `*.crt` matches several.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mm2slo_core.config.config_problems import Path
    from mm2slo_core.mm2_config.mirror_setup import Setting
    from mm2slo_core.mm2_config.resource_text import ResourceText
    from mm2slo_core.mm2_config.strimzi_resource import Authentication, Cluster, SecretRef

_MODULES: Final = "org.apache.kafka.common.security"
_LOGIN: Final = (
    'LoginModule required username="{username}"'
    ' password="${{secret:{passwordSecret[secretName]}:{passwordSecret[password]}}}";'
)
_SCRAM: Final = f"{_MODULES}.scram.Scram{_LOGIN}"
_PAIR: Final = "${{secret:{certificateAndKey[secretName]}:"
# Settings of each type, as format strings of the keys of `authentication`. Strimzi does not escape
# the values of JAAS options either.
_SETTINGS: Final = {
    "tls": {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": _PAIR + "{certificateAndKey[certificate]}}}",
        "ssl.keystore.key": _PAIR + "{certificateAndKey[key]}}}",
    },
    "plain": {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f"{_MODULES}.plain.Plain{_LOGIN}"},
    "scram-sha-256": {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": _SCRAM},
    "scram-sha-512": {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": _SCRAM},
    "oauth": {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required"
        ' oauth.client.id="{clientId}" oauth.token.endpoint.uri="{tokenEndpointUri}"'
        ' oauth.client.secret="${{secret:{clientSecret[secretName]}:{clientSecret[key]}}}"'
        "{options};",
        "sasl.login.callback.handler.class": (
            "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
        ),
    },
    "custom": {},
}
_OTHER_GRANTS: Final = {
    "accessToken", "accessTokenLocation", "clientAssertion", "clientAssertionLocation",
    "passwordSecret", "refreshToken",
}  # fmt: skip


def cluster_settings(text: ResourceText, cluster: Cluster, path: Path) -> dict[str, Setting]:
    """All settings of *cluster*, written at *path*; its `config` wins, as in Strimzi."""
    given, tls, auth = cluster.authentication, cluster.tls, (*path, "authentication")
    protocol = "PLAINTEXT" if tls is None else "SSL"
    servers = {"bootstrap.servers": cluster.bootstrap_servers}
    settings = text.place(servers, (*path, "bootstrapServers"))
    if tls is not None and tls.trusted_certificates:
        trusted = _certificates(text, tls.trusted_certificates, (*path, "tls"))
        stores = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": trusted}
        settings |= text.place(stores, (*path, "tls"))
    if given is not None:
        settings |= _authentication(text, given, auth)
        if given.sasl if given.type == "custom" else given.type != "tls":
            protocol = "SASL_PLAINTEXT" if tls is None else "SASL_SSL"
    settings |= text.place({"security.protocol": protocol}, auth)
    return settings | text.settings(cluster.config, (*path, "config"))


def _authentication(text: ResourceText, given: Authentication, path: Path) -> dict[str, Setting]:
    values = given.model_dump(by_alias=True, exclude_none=True)
    grants = sorted(_OTHER_GRANTS & values.keys()) if given.type == "oauth" else []
    if given.type not in _SETTINGS or grants:
        what = ", ".join(grants) or f"type {given.type}"
        text.report("unsupported-authentication", path, f"authentication uses {what}")
        return {}
    values["options"] = "".join(f' {name}="{value}"' for name, value in _options(given).items())
    settings = {}
    try:
        for key, template in _SETTINGS[given.type].items():
            settings[key] = template.format_map(values)
    except KeyError as missing:
        text.require(path, str(missing.args[0]))
    if given.type == "custom":
        return _custom(text, given, path)
    if given.tls_trusted_certificates:
        # Of Strimzi's OAuth client. Options of JAAS cannot contain its line breaks.
        trusted = _certificates(text, given.tls_trusted_certificates, path)
        settings["sasl.oauthbearer.ssl.truststore.certificates"] = trusted
    return text.place(settings, path)


def _options(given: Authentication) -> dict[str, str]:
    options = {
        "oauth.client.credentials.grant.type": given.grant_type,
        "oauth.scope": given.scope,
        "oauth.audience": given.audience,
        "oauth.ssl.endpoint.identification.algorithm": (
            "" if given.disable_tls_hostname_verification else None
        ),
    }
    extensions = given.sasl_extensions or {}
    options |= {f"oauth.sasl.extension.{name}": value for name, value in extensions.items()}
    return {name: value for name, value in options.items() if value is not None}


def _custom(text: ResourceText, given: Authentication, path: Path) -> dict[str, Setting]:
    config = text.settings(given.config, (*path, "config"))
    for key in [key for key in config if not key.startswith(("sasl.", "ssl.keystore."))]:
        what = f"authentication.config has {key}; expected only sasl.* and ssl.keystore.*"
        text.report("ignored-key", config.pop(key).origin, what, "move it to the cluster's config")
    return config


def _certificates(text: ResourceText, sources: tuple[SecretRef, ...], path: Path) -> str:
    references = []
    for source in sources:
        key = source.certificate or source.pattern
        text.require(path, *([] if key else ["certificate"]))
        references.append(f"${{secret:{source.secret_name}:{key}}}")
    return "\n".join(references)
