"""What concerns a topic: on its page, and in the listing of objects that is filtered by it."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import Identity
from kafkaform.core.value import FrozenMap
from kafkaform.state.codec import encode
from kafkaform.state.model import Row, State
from kafkaform.window.page import make_id
from kafkaform.window.related import find_links, find_related, read_types
from kafkaform.window.server import find_page
from kafkaform.workflow.stores import STATE_FILE

from ...kit.markup import Page
from ...kit.states import topic
from .world import acl, make_sources

ORDERS = Identity("kafka", "kafka_topic", "orders")


def quota(key: str, entity: dict[str, str | None], limits: dict[str, int]) -> Row:
    values = FrozenMap(entity=FrozenMap(entity), config=FrozenMap(limits))
    return Row(Identity("kafka", "kafka_quota", key), ("kafka_quota.q",), 4, values)


def connector(name: str, config: dict[str, str], instance: str = "kafka_connect") -> Row:
    values = FrozenMap({"name": name, "class": "FileStreamSink", "config": FrozenMap(config)})
    identity = Identity(instance, "kafka_connect_connector", name)
    return Row(identity, (f"kafka_connect_connector.{name}",), 4, values)


def schema(subject: str) -> Row:
    values = FrozenMap(subject=subject, format="avro", schema='"string"', references=())
    identity = Identity("schema_registry", "schema_registry_schema", subject)
    return Row(identity, ("schema_registry_schema.s",), 4, values)


def level(subject: str) -> Row:
    identity = Identity("schema_registry", "schema_registry_subject_config", subject)
    values = FrozenMap(subject=subject, compatibility_level="FULL")
    return Row(identity, ("schema_registry_subject_config.s",), 4, values)


ROWS = (
    topic("orders", owner="shop"),
    topic("orders-dead", owner="shop"),
    topic("clicks", owner="web"),
    acl("User:app", "Read", "orders"),
    acl("User:audit", "Read", "ord", pattern="Prefixed"),
    acl("User:evil", "All", "*", "Deny"),
    acl("User:web", "Write", "clicks"),
    acl("User:web", "Write", "orders-", pattern="Prefixed"),
    quota("user=app", {"user": "app"}, {"producer_byte_rate": 1_048_576}),
    quota("user", {"user": None}, {"consumer_byte_rate": 2_097_152}),
    quota("user=web", {"user": "web"}, {"producer_byte_rate": 5}),
    quota("user=evil", {"user": "evil"}, {"producer_byte_rate": 6}),
    quota("client-id=tool", {"client-id": "tool"}, {"producer_byte_rate": 7}),
    connector("archive", {"topics": "orders,clicks"}),
    connector("all", {"topics.regex": "ord.*"}),
    connector("other", {"topics": "clicks"}),
    schema("orders-value"),
    schema("clicks-value"),
    level("orders-value"),
    level("clicks-value"),
)


def make_state(*rows: Row, **systems: str) -> State:
    """A state of two Kafka clusters, workers and a registry."""
    scopes = {"kafka": "k-1", "kafka_connect": "connect:k-1/g", "schema_registry": "reg"}
    return State("lineage", 1, {r.identity: r for r in rows}, FrozenMap({**scopes, **systems}))


def read(folder: Path, state: State, path: str, query: str = "") -> str:
    folder.joinpath(STATE_FILE).write_bytes(encode(state))
    found = find_page(make_sources(folder), path, query, "/root/")
    assert found is not None, path
    texts = (text for trail, text in Page(found).texts if "main" in trail)
    return " ".join(" ".join(texts).split())


def test_a_topic_has_its_acls_quotas_schemas_and_connectors(tmp_path: Path) -> None:
    """ACLs of its name, of a prefix and of every topic; quotas of those whom they allow something;
    what reads it, also by a pattern, what describes it, and what belongs to that."""
    text = read(tmp_path, make_state(*ROWS), f"objects/{make_id(str(ORDERS))}")
    assert "3 recorded ACLs for this name" in text
    acls = [
        'Allow User:app Read on topic "orders" from any host',
        'Allow User:audit Read on topics with prefix "ord" from any host',
        "Deny User:evil All on every topic from any host",
    ]
    assert sorted(acls, key=text.index) == acls, "the most specific first"
    assert "User:web" not in text
    assert "user app producer_byte_rate = 1 MiB/s (1048576) app" in text
    assert "default user consumer_byte_rate = 2 MiB/s" in text
    for hidden in ("user web", "user evil", "client-id tool"):
        assert hidden not in text, "nobody whom an ACL of this topic allows something"
    assert "archive kafka_connect_connector reads orders" in text
    assert "all kafka_connect_connector reads orders" in text
    assert "orders-value schema_registry_schema describes orders" in text
    assert "orders-value schema_registry_subject_config belongs to orders-value" in text
    assert "clicks-value" not in text and "other" not in text


def test_the_related_objects_are_linked(tmp_path: Path) -> None:
    """Each has a page, and the page of rights answers about this topic."""
    state = make_state(*ROWS)
    (tmp_path / STATE_FILE).write_bytes(encode(state))
    sources = make_sources(tmp_path)
    page = find_page(sources, f"objects/{make_id(str(ORDERS))}", "", "/root/")
    assert page is not None
    links = {str(a["href"]) for a in Page(page).all("a")}
    for identity in find_related(state, ORDERS, read_types(state)).identities:
        assert f"/root/objects/{make_id(str(identity))}" in links, identity
        assert find_page(sources, f"objects/{make_id(str(identity))}", "", "/root/")
    assert "/root/access?instance=kafka&kind=Topic&name=orders" in links
    assert "/root/objects?topic=orders" in links


def test_a_topic_that_nobody_uses_says_so(tmp_path: Path) -> None:
    """No ACL, no quota, no schema and no connector are four sentences, not four gaps."""
    text = read(tmp_path, make_state(topic("orders")), f"objects/{make_id(str(ORDERS))}")
    assert "The state records no ACL that covers this topic." in text
    assert "no quota for a user" in text and "no schema or connector" in text


def test_a_connector_leads_to_its_topics(tmp_path: Path) -> None:
    """Its page names what it works with."""
    identity = Identity("kafka_connect", "kafka_connect_connector", "archive")
    text = read(tmp_path, make_state(*ROWS), f"objects/{make_id(str(identity))}")
    assert "reads orders kafka_topic kafka" in text and "reads clicks kafka_topic" in text


@pytest.mark.parametrize(
    ("row", "names"),
    [
        (ROWS[3], ["orders"]),
        (ROWS[4], ["orders", "orders-dead"]),
        (ROWS[5], ["clicks", "orders", "orders-dead"]),
        (ROWS[7], ["orders-dead"]),
    ],
)
def test_an_acl_leads_to_the_topics_that_it_covers(row: Row, names: list[str]) -> None:
    """By a name, by a prefix, and all of them."""
    state = make_state(*ROWS)
    relations = find_links(state, row, read_types(state))
    assert [relation.row.identity.key for relation in relations] == names


def test_workers_belong_to_one_kafka_cluster() -> None:
    """Two clusters have a topic of the same name, and the workers read that of their own."""
    other = Identity("kafka.eu", "kafka_topic", "orders")
    rows = (*ROWS, replace(ROWS[0], identity=other))
    state = make_state(*rows, **{"kafka.eu": "k-2"})
    types = read_types(state)
    assert len(find_related(state, ORDERS, types).users) == 4
    users = find_related(state, other, types).users
    assert {relation.row.identity.kind for relation in users} == {
        "schema_registry_schema",
        "schema_registry_subject_config",
    }, "a registry does not say which cluster it serves"


def test_a_row_that_was_edited_is_a_fault_with_advice() -> None:
    """A schema without its subject is no crash."""
    broken = replace(schema("orders-value"), attributes=FrozenMap(format="avro"))
    state = make_state(topic("orders"), broken)
    with pytest.raises(KafkaformError, match="lacks 'subject'"):
        find_related(state, ORDERS, read_types(state))


def list_names(folder: Path, state: State, query: str) -> tuple[str, list[str]]:
    """The sentence above the listing, and the objects in it."""
    folder.joinpath(STATE_FILE).write_bytes(encode(state))
    page = find_page(make_sources(folder), "objects", query, "/root/")
    assert page is not None
    texts = [text for trail, text in Page(page).texts if "td" in trail and "a" in trail]
    lead = next(text for trail, text in Page(page).texts if "main" in trail and "p" in trail)
    return lead, texts


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("", 20),
        ("kind=kafka_acl", 5),
        ("owner=shop", 2),
        ("owner=(none)", 17),
        ("kind=kafka_topic&owner=web", 1),
        ("topic=orders", 10),
        ("topic=orders&kind=kafka_acl", 3),
        ("topic=orders&q=prefix", 1),
        ("provider=schema_registry", 4),
        ("kind=kafka_quota&q=evil", 1),
    ],
)
def test_objects_are_filtered(tmp_path: Path, query: str, number: int) -> None:
    """By kind, provider, owner, topic and words, in any combination, with the number of both."""
    lead, names = list_names(tmp_path, make_state(*ROWS), query)
    assert lead == f"{number} of 20 recorded objects."
    assert len(names) == number


@pytest.mark.parametrize("query", ["kind=kafka_thing", "owner=nobody", "topic=none&q=x"])
def test_a_filter_that_nothing_fits_says_so(tmp_path: Path, query: str) -> None:
    """The form keeps what was asked, and a link shows all objects again."""
    text = read(tmp_path, make_state(*ROWS), "objects", query)
    assert "None of 20 recorded objects fits the filter." in text
    assert "Show all objects" in text
    page = find_page(make_sources(tmp_path), "objects", query, "/root/")
    assert page is not None and "<table" not in page
    for value in (part.partition("=")[2] for part in query.split("&")):
        assert f'value="{value}"' in page, "the form keeps it"


def test_the_form_offers_what_there_is(tmp_path: Path) -> None:
    """Every kind, provider and owner of the state once, and all of them."""
    (tmp_path / STATE_FILE).write_bytes(encode(make_state(*ROWS)))
    page = find_page(make_sources(tmp_path), "objects", "owner=web", "/root/")
    assert page is not None
    offered = [text for trail, text in Page(page).texts if "option" in trail]
    kinds = sorted({row.identity.kind for row in ROWS})
    providers = ["kafka", "kafka_connect", "schema_registry"]
    assert offered == ["all", *kinds, "all", *providers, "all", "(none)", "shop", "web"]
    assert '<option value="web" selected>' in page


def test_pages_of_a_listing_keep_the_filter(tmp_path: Path) -> None:
    """The link to further rows has the same filter."""
    rows = [topic(f"t{number:03d}", owner="a b&c") for number in range(450)]
    (tmp_path / STATE_FILE).write_bytes(encode(make_state(*rows, topic("x"))))
    sources = make_sources(tmp_path)
    query, names = "kind=kafka_topic&owner=a+b%26c&q=t", list[str]()
    while query:
        page = find_page(sources, "objects", query, "/root/")
        assert page is not None and "450 of 451 recorded objects." in page
        names += [text for trail, text in Page(page).texts if "td" in trail and "a" in trail]
        links = [str(a["href"]) for a in Page(page).all("a") if "first=" in str(a["href"])]
        later = [link for link in links if f"first={len(names)}" in link]
        query = later[0].partition("?")[2] if later else ""
    assert names == [f"t{number:03d}" for number in range(450)]
