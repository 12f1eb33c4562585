"""The list of kinds, the table of APIs and the order of requests say the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kafka.protocol import admin, consumer, metadata
from msgspec.structs import replace

from kafkaform.core.change import Request
from kafkaform_kafka.kinds import kind
from kafkaform_kafka.kinds.context import Requests
from kafkaform_kafka.kinds.kind import CREATING, ResourceKind, make_request
from kafkaform_kafka.memory.cluster import join_tables
from kafkaform_kafka.protocol.apis import APIS, Api
from kafkaform_kafka.provider import PROVIDER
from kafkaform_kafka.resource_kinds import KINDS
from kafkaform_kafka.session import join_sends
from kafkaform_kafka.wire import groups, security

ORDER = [place for place in vars(kind).values() if isinstance(place, Request)]
COMPOSITE = frozenset({"kafka_access"})
"""Stands for objects of another kind, so nothing is read or sent for it."""
UNGUARDED = frozenset(
    {
        "kafka_acl",
        "kafka_access",
        "kafka_topic_leaders",
        "kafka_feature",
        "kafka_delegation_token",
        "kafka_consumer_group",
        "kafka_group_offsets",
        "kafka_group_positions",
        "kafka_rights",
    }
)
"""No row in the guard against lock-outs: the rights on ACLs are guarded always, the others need
none that a state depends on."""


def connected(kind: ResourceKind) -> Requests:
    """How a real cluster is asked for this kind."""
    assert kind.connect is not None
    return kind.connect()


def sent() -> Iterator[str]:
    """The APIs that kinds send."""
    return iter(join_sends(connected(kind) for kind in KINDS if kind.connect is not None))


@pytest.mark.parametrize("api", sorted({*sent(), *(place.name for place in ORDER)}))
def test_each_api_that_a_kind_sends_has_a_whole_row(api: str) -> None:
    """What a refusal means, what one request holds, and that somebody sends it, at a place of the
    order, and the simulated cluster takes it."""
    row = APIS[api]
    assert row.name == api and row.limits is not None
    assert row.limits.items > 0 and row.limits.weight > 0
    assert row.operation and f"{row.operation} on " in row.right
    assert api in set(sent()) and api in {place.name for place in ORDER}
    assert api in join_tables(KINDS).handlers
    assert not row.at_once  # another broker must not get it too


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_each_row_is_that_of_the_protocol(api: Api) -> None:
    """Its number is the client's, and only what changes something has limits."""
    modules: tuple[Any, ...] = (admin, metadata, consumer, security, groups)
    (found,) = {
        request.API_KEY
        for module in modules
        if (request := getattr(module, f"{api.name}Request", None)) is not None
    }
    assert found == api.key
    assert (api.limits is not None) == (api.name in set(sent()))


def test_the_order_stands_as_it_is_sent() -> None:
    """First to last, each place once; limits are the API's."""
    places = [(place.part, place.phase) for place in ORDER]
    assert places == sorted(set(places))
    for place in ORDER:
        limits = APIS[place.name].limits
        assert limits is not None
        assert (place.max_items, place.max_weight) == (limits.items, limits.weight)
    create = kind.CREATE_ACLS.phase
    assert kind.DELETE_ALLOW_AHEAD < kind.DELETE_DENY_AHEAD < create


def test_a_place_is_for_what_changes_something() -> None:
    """A read has no place in the order."""
    with pytest.raises(ValueError, match="Metadata changes nothing"):
        make_request(APIS["Metadata"], CREATING, 10)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_says_all_of_itself(kind: ResourceKind) -> None:
    """It can be read on a real cluster and on the simulated one; its type has its name; what may
    be lost with a right is guarded."""
    assert (kind.connect is None) == (kind.simulate is None) == (kind.name in COMPOSITE)
    assert (kind.rights is None) == (kind.name in UNGUARDED)
    assert kind.type is None or kind.type.name == kind.name
    types = {**PROVIDER.types, **PROVIDER.commanded}
    assert types.get(kind.name) is kind.type
    if kind.connect is not None and kind.simulate is not None:
        assert set(connected(kind).sends) <= set(APIS)


def test_no_two_kinds_send_one_api_in_two_ways() -> None:
    """Requests of several kinds travel in one batch, so one function must send them all."""
    one = next(requests for kind in KINDS if kind.connect and (requests := kind.connect()).sends)
    assert join_sends([one, one]) == one.sends
    (api, *_) = one.sends
    other = replace(one, sends={api: lambda _, __: ()})
    with pytest.raises(ValueError, match=f"{api} is sent by two functions"):
        join_sends([one, other])
