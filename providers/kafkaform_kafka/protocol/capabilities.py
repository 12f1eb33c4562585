"""What only some releases of Kafka have, beside the requests of `apis` and the configs of
`config_keys` and `broker_keys`.

`apis.APIS` says since when a request exists in the form that is sent; a request that a broker does
not have is refused by its name. This table has the rest: what an older broker would refuse with a
message that names nothing, or would answer in a way that means something else.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kafkaform.core.resource import Facts, Fault, FaultClass

from .releases import is_before


class Capability(Struct, frozen=True):
    """Something that not every cluster has."""

    name: str
    """The subject of a sentence, in the plural."""
    since: str
    """The first release that has it."""
    without: str
    """What happens on a cluster that does not have it."""
    zookeeper: bool = True
    """False if a cluster with ZooKeeper does not have it in any release."""
    advice: str = "upgrade the cluster, or remove the block"


# A broker before 4.0 refuses the whole DescribeConfigs request with INVALID_REQUEST (42).
GROUP_CONFIGS = Capability(
    "configs of groups", "4.0", "`kafka_group_config` is refused", zookeeper=False
)
# With ZooKeeper, DescribeConfigs of a subscription succeeds and is empty (3.7 to 3.9), so that it
# would look as if it could be created.
CLIENT_METRICS = Capability(
    "client metrics subscriptions", "3.7", "`kafka_client_metrics` is refused", zookeeper=False
)
# ListConfigResources v1 (KIP-1142). Reading one group by name works before.
GROUP_CONFIG_LISTING = Capability(
    "listings of groups with configs",
    "4.1",
    "declared groups are read by name; `import --all` and snapshots leave groups out",
    zookeeper=False,
    advice="name the groups in import blocks",
)
# KIP-373. An older broker takes the codes for UNKNOWN and answers with INVALID_REQUEST (42).
USER_ACLS = Capability(
    "ACLs on users (CreateTokens, DescribeTokens)",
    "3.3",
    "the ACL is refused",
)
TWO_PHASE_ACLS = Capability("ACLs with the operation TwoPhaseCommit", "4.1", "the ACL is refused")

UNSUPPORTED_VERSION = "UNSUPPORTED_VERSION"
"""Kafka's own code: the brokers are too old for a request."""
FEATURE_MISSING = "FEATURE_MISSING"
"""The code of a listing of objects that this cluster cannot have, which says more than Kafka's
UNSUPPORTED_VERSION: there are none."""

CAPABILITIES = (GROUP_CONFIGS, CLIENT_METRICS, GROUP_CONFIG_LISTING, USER_ACLS, TWO_PHASE_ACLS)


def explain_absence(capability: Capability, facts: Facts) -> str:
    """Why this cluster does not have the capability; empty if it has it, or if nobody knows."""
    release = facts.values.get("kafka_version")
    if not isinstance(release, str):
        return ""
    if facts.values.get("zookeeper") and not capability.zookeeper:
        return (
            f"the cluster runs Kafka {release} with ZooKeeper; {capability.name} exist only with "
            "KRaft"
        )
    if is_before(release, capability.since):
        since = f"{capability.name} exist since Kafka {capability.since}"
        return f"the cluster runs Kafka {release}; {since}"
    return ""


def capability_faults(capability: Capability, facts: Facts) -> Iterator[tuple[str, str]]:
    """Summary and advice for a change that needs a capability that this cluster does not have."""
    if absence := explain_absence(capability, facts):
        yield absence, capability.advice


def acl_faults(resource_type: str, operation: str, facts: Facts) -> Iterator[tuple[str, str]]:
    """The faults of an ACL that needs a capability that this cluster does not have."""
    if resource_type == "User":
        yield from capability_faults(USER_ACLS, facts)
    if operation == "TwoPhaseCommit":
        yield from capability_faults(TWO_PHASE_ACLS, facts)


def find_capability_fault(
    capability: Capability, facts: Facts, api: str, code: str = UNSUPPORTED_VERSION
) -> Fault | None:
    """The fault of a read that needs a capability that this cluster does not have. api: the request
    that is not sent."""
    absence = explain_absence(capability, facts)
    return Fault(code, absence, FaultClass.DEFINITE, api, capability.advice) if absence else None


def find_listing_fault(
    objects: Capability | None, listing: Capability | None, facts: Facts, api: str
) -> Fault | None:
    """The fault of a listing that this cluster does not have. Its code is FEATURE_MISSING if there
    can be no such objects. objects, listing: what the objects and what their listing need, None if
    every cluster has it; api: the request that is not sent."""
    missing = find_capability_fault(objects, facts, api, FEATURE_MISSING) if objects else None
    if missing is None and listing is not None:
        return find_capability_fault(listing, facts, api)
    return missing
