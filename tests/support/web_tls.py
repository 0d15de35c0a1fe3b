"""Certificates and web configuration files for tests of servers with TLS."""

import json
import ssl
from pathlib import Path

import trustme

CA = trustme.CA()
CLIENT_CA = trustme.CA()


def write_certificate(folder: Path) -> bytes:
    """New files in place of the old; the certificate's DER form is returned."""
    leaf = CA.issue_cert("127.0.0.1")
    for name, blobs in (("cert.pem", leaf.cert_chain_pems), ("key.pem", [leaf.private_key_pem])):
        fresh = folder / f"{name}.new"
        fresh.write_bytes(b"".join(blob.bytes() for blob in blobs))
        fresh.replace(folder / name)
    return ssl.PEM_cert_to_DER_cert(leaf.cert_chain_pems[0].bytes().decode())


def write_config(folder: Path, **more: object) -> Path:
    write_certificate(folder)
    CLIENT_CA.cert_pem.write_to_path(str(folder / "clients.pem"))
    file = folder / "web.yml"
    tls = {"cert_file": "cert.pem", "key_file": "key.pem"} | more
    file.write_text(json.dumps({"tls_server_config": tls}))
    return file


def trusting(client: trustme.LeafCert | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    CA.configure_trust(context)
    if client is not None:
        client.configure_cert(context)
    return context
