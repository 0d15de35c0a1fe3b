"""ACLs that `mm2slo render --to acls` prints, granted and revoked on brokers."""

import argparse
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from secured_listeners import admin_client

from mm2slo_lab.broker import Broker


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
