"""`explain quota`: every level with what is set on it, the one that applies, and who shares it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from kafkaform.core.resource import Depth
from kafkaform.core.value import FrozenMap
from kafkaform.render.text import render_page
from kafkaform_kafka.inspect.explanations import Client, explain_quotas, quota_page
from kafkaform_kafka.kinds.quota import resource_type as quotas
from kafkaform_kafka.kinds.quota.limits import LEVELS

from ....kit.kafka.changes import facts

Rows = tuple[tuple[dict[str, str | None], dict[str, Decimal]], ...]
BOTH = Client("ci", "app")
PRODUCE = "producer_byte_rate"
ENTITIES: tuple[dict[str, str | None], ...] = (
    {"user": "ci", "client-id": "app"},
    {"user": "ci", "client-id": None},
    {"user": "ci"},
    {"user": None, "client-id": "app"},
    {"user": None, "client-id": None},
    {"user": None},
    {"client-id": "app"},
    {"client-id": None},
)
SHARED = (
    "user ci with client-id app",
    "user ci with client-id app",
    "any client of user ci",
    "user ci with client-id app",
    "user ci with client-id app",
    "any client of user ci",
    "anybody with client-id app",
    "anybody with client-id app",
)


def told(client: Client, rows: Rows, callback: str | None = None) -> FrozenMap:
    sweep = quotas.make_quota_sweep("kafka", Depth.FULL, rows)
    return explain_quotas(client, sweep, facts(quota_callback=callback))


def limit(document: FrozenMap, key: str) -> FrozenMap:
    (found,) = (row for row in document["limits"] if row["key"] == key)
    return found


@pytest.mark.parametrize("number", range(1, 9))
def test_the_most_specific_level_applies(number: int) -> None:
    """With this level and all below it set, it is the one, and says who shares its limit."""
    rows = tuple((e, {PRODUCE: Decimal(n)}) for n, e in enumerate(ENTITIES, 1) if n >= number)
    document = told(BOTH, rows)
    assert [row["level"] for row in document["levels"]] == [level.number for level in LEVELS]
    assert [row["entity"] for row in document["levels"]] == list(ENTITIES)
    found = limit(document, PRODUCE)
    assert (found["level"], found["value"], found["entity"]) == (
        number,
        number,
        ENTITIES[number - 1],
    )
    assert found["shared_by"] == SHARED[number - 1]


def test_each_key_comes_from_its_own_level() -> None:
    """A user's own byte rate does not hide everybody's request percentage."""
    everybody = {PRODUCE: Decimal(9), "request_percentage": Decimal("0.5")}
    rows: Rows = (
        ({"user": "ci"}, {PRODUCE: Decimal(5)}),
        ({"user": None, "client-id": None}, everybody),
    )
    document = told(BOTH, rows)
    assert [(row["key"], row["level"], row["value"]) for row in document["limits"]] == [
        (PRODUCE, 3, 5),
        ("consumer_byte_rate", None, None),
        ("request_percentage", 5, Decimal("0.5")),
        ("controller_mutation_rate", None, None),
    ]
    assert document["levels"][4]["config"] == everybody


def test_others_do_not_count() -> None:
    """Another user, another client id, and a user who is really called default."""
    rows: Rows = (
        ({"user": "cd"}, {PRODUCE: Decimal(1)}),
        ({"client-id": "App"}, {PRODUCE: Decimal(1)}),
        ({"user": "default"}, {PRODUCE: Decimal(1)}),
    )
    assert limit(told(BOTH, rows), PRODUCE)["value"] is None


def test_an_address_has_limits_of_its_own() -> None:
    """The address itself, else the default one; users have nothing to do with it."""
    default = ({"ip": None}, {"connection_creation_rate": Decimal(9)})
    exact = ({"ip": "192.0.2.7"}, {"connection_creation_rate": Decimal(3)})
    both: Rows = (default, exact)
    for ip, value in (("192.0.2.7", 3), ("192.0.2.8", 9)):
        document = told(Client(ip=ip), both)
        (found,) = document["limits"]
        assert (found["value"], found["shared_by"]) == (value, f"everybody who connects from {ip}")
    nothing = told(Client("ci", "app", "192.0.2.7"), ())
    assert {row["value"] for row in nothing["limits"]} == {None} and len(nothing["limits"]) == 5


def test_a_callback_of_the_cluster_comes_first() -> None:
    """It voids what follows, so it is said before it."""
    first, *_ = render_page(quota_page(told(BOTH, (), "org.example.Tiers")))
    assert "client.quota.callback.class = org.example.Tiers" in first
    assert not any("callback" in line for line in render_page(quota_page(told(BOTH, ()))))


def test_the_table_marks_what_applies_and_nothing_foreign_moves_the_terminal() -> None:
    """Names come from others."""
    client = Client("c\x1b[2Ji", "app")
    rows: Rows = (({"user": "c\x1b[2Ji"}, {PRODUCE: Decimal(5)}),)
    text = "\n".join(render_page(quota_page(told(client, rows))))
    assert "\x1b" not in text and text.count("5 B/s *") == 1
    assert "no limit" in text and "5 B/s at each broker" in text


NAMED = tuple((entity, {PRODUCE: Decimal(n)}) for n, entity in enumerate(ENTITIES, 1))


def test_a_user_alone_is_answered() -> None:
    """For the client ids that no quota names; those with limits of their own are listed."""
    document = told(Client("ci"), NAMED[1:])
    assert [row["level"] for row in document["levels"]] == [2, 3, 5, 6, 8]
    found = limit(document, PRODUCE)
    assert (found["level"], found["value"]) == (2, 2)
    assert found["shared_by"] == "each client-id alone, with user ci"
    assert document["others"] == ("app",)
    assert (document["user"], document["client_id"]) == ("ci", None)
    text = "\n".join(render_page(quota_page(document)))
    assert 'user "ci", any client-id without a limit of its own' in text
    assert "Other limits can apply with client-id app: add `client ID`." in text
    shared = limit(told(Client("ci"), NAMED[2:]), PRODUCE)
    assert (shared["level"], shared["shared_by"]) == (3, "any client of user ci")


def test_a_client_id_alone_is_answered() -> None:
    """For the users that no quota names."""
    document = told(Client(client_id="app"), NAMED)
    assert [row["level"] for row in document["levels"]] == [4, 5, 6, 7, 8]
    assert limit(document, PRODUCE)["level"] == 4
    assert document["others"] == ("ci",)
    assert told(BOTH, NAMED)["others"] == ()
    lowest = limit(told(Client(client_id="app"), NAMED[6:]), PRODUCE)
    assert (lowest["level"], lowest["shared_by"]) == (7, "anybody with client-id app")


def test_limits_of_other_pairs_are_no_others() -> None:
    """Of another user's clients nothing is said."""
    rows: Rows = (({"user": "billing", "client-id": "export"}, {PRODUCE: Decimal(1)}),)
    assert told(Client("ci"), rows)["others"] == ()
