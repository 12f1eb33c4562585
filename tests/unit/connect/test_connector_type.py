"""The resource type: names, targets, steps, and what it says about topics."""

from __future__ import annotations

import pytest

from kafkaform.core.change import Action, Change, Evidence, Ownership, PathChange, Repeat
from kafkaform.core.resource import Facts, Identity, Observed, Use
from kafkaform.core.value import EMPTY, FrozenMap, SecretRef
from kafkaform.plan.diff import compare
from kafkaform_connect.connector import KIND, TYPE, list_uses, make_attributes
from kafkaform_connect.rest import parse_release

FACTS = Facts("cluster")
SECRET = SecretRef("env", "A")
TOPIC = FrozenMap(topic="t")


def declared(**given: object) -> FrozenMap:
    """Keyword `class_` is `class`."""
    usual = {"name": "a", "class_": "S", "config": FrozenMap(topic="t"), "state": "running"}
    return FrozenMap({key.rstrip("_"): value for key, value in {**usual, **given}.items()})


def observed(
    config: FrozenMap = TOPIC,
    secrets: tuple[str, ...] = (),
    state: str = "running",
    failures: FrozenMap = EMPTY,
    foreign: frozenset[tuple[str, ...]] = frozenset(),
) -> Observed:
    attributes = make_attributes("a", "S", config, secrets, state)
    identity = Identity("kafka_connect", KIND, "a")
    return Observed(identity, attributes.with_items({"failures": failures}), foreign=foreign)


def make_update(live: Observed, wish: FrozenMap, *, version: str | None = None) -> Change:
    """The change from what is live to what is declared, with a new version of its secrets."""
    after = TYPE.target(wish, live, FACTS, False)
    return Change(
        live.identity,
        "kafka_connect_connector.a",
        Action.UPDATE,
        before=live.attributes,
        after=after,
        paths=compare(live.attributes, after, schema=TYPE.schema),
        row_after=Ownership(secret_version=version),
    )


@pytest.mark.parametrize(
    "name",
    [
        *("", " a", "a ", ".", "..", "a\nb", "a\x00", "\x7f", "a\x85", "n" * 250),
        *("a/b", "a\\b", "100%", "a%2Fb", "{a}", "a}"),
    ],
)
def test_a_name_that_the_rest_api_cannot_have_is_refused(name: str) -> None:
    """Workers trim names, refuse control characters, and serve no connector with a slash, a
    backslash, a percent sign or braces."""
    with pytest.raises(ValueError, match="connector"):
        TYPE.import_key(name)


@pytest.mark.parametrize("name", ["a", "orders sink", "ä", "a.b-c_d", "a+b;c=d,e:f", "a?b#c"])
def test_other_names_are_keys(name: str) -> None:
    """A key is a valid import id of itself."""
    assert TYPE.import_key(name) == name


def test_equal_lists_have_one_spelling() -> None:
    """Readers trim the elements of `topics`, so spaces are no difference."""
    spelled = declared(config=FrozenMap(topics="a, b ,c"))
    assert TYPE.canonical(spelled, FACTS)["config"]["topics"] == "a,b,c"


def test_what_is_not_declared_is_removed_unless_it_is_the_default() -> None:
    """What a worker filled in stays, and so does what the block sets to null."""
    live = observed(
        FrozenMap(topic="t", extra="1", filled="default", left="x"),
        foreign=frozenset({("config", "filled")}),
    )
    wish = declared(config=FrozenMap(topic="t", left=None))
    target = TYPE.target(wish, live, FACTS, False)
    assert target["config"] == FrozenMap(topic="t", filled="default", left="x")
    assert TYPE.ours is not None
    assert TYPE.ours(target, wish)["config"] == FrozenMap(topic="t")
    kept = TYPE.target(wish, live, FACTS, True)
    assert kept["config"]["extra"] == "1"


@pytest.mark.parametrize(
    ("live", "name", "plugins", "same"),
    [
        ("x.FileConnector", "File", (), True),
        ("File", "x.FileConnector", ("x.FileConnector",), True),
        ("FileConnector", "File", ("x.FileConnector",), True),
        ("x.FileConnector", "y.FileConnector", (), False),
        # The short name is that of the only such plugin which the workers have.
        ("x.FileConnector", "File", ("y.FileConnector", "x.FileConnector"), False),
        ("x.FileConnector", "File", ("y.FileConnector",), True),
    ],
)
def test_another_name_of_the_same_plugin_is_no_change(
    live: str, name: str, plugins: tuple[str, ...], same: bool
) -> None:
    """What is live stays; two plugins with one short name are told apart by the workers' list."""
    attributes = make_attributes("a", live, TOPIC, (), "running")
    reading = Observed(Identity("kafka_connect", KIND, "a"), attributes)
    facts = Facts("cluster", values=FrozenMap(plugins=plugins))
    target = TYPE.target(declared(class_=name), reading, facts, False)
    assert target["class"] == (live if same else name)


def test_a_secret_is_only_ever_a_reference() -> None:
    """The target has the reference, the state records only that something is set."""
    wish = declared(secret_config=FrozenMap(pin=SECRET))
    target = TYPE.target(wish, None, FACTS, False)
    assert target["secret_config"] == FrozenMap(pin=SECRET)
    assert target["secret_keys"] == FrozenMap(pin="set")


def test_an_update_sends_only_what_differs() -> None:
    """Secrets stay at the worker: they are sent when they are new or their version changes."""
    live = observed(FrozenMap(topic="t", old="1"), ("pin",))
    wish = declared(config=FrozenMap(topic="u"), secret_config=FrozenMap(pin=SECRET))
    (step,) = TYPE.steps(make_update(live, wish), FACTS)
    assert step.payload["put"] == FrozenMap(topic="u") and step.payload["gone"] == ("old",)
    assert step.payload["secrets"] == EMPTY
    assert step.repeat is Repeat.SAFE and step.evidence is Evidence.REMOTE
    (step,) = TYPE.steps(make_update(live, wish, version="2"), FACTS)
    assert step.payload["secrets"] == FrozenMap(pin=SECRET)
    # Nobody can read whether it arrived, and a dry run does not know it.
    assert step.repeat is Repeat.NEVER and step.evidence is Evidence.LOCAL
    (step,) = TYPE.steps(make_update(observed(), wish), FACTS)
    assert step.payload["secrets"] == FrozenMap(pin=SECRET)


def test_a_secret_that_becomes_text_is_not_removed() -> None:
    """A value that moves from secret_config to config, as a reference, is set and not deleted."""
    wish = declared(config=FrozenMap(topic="t", password="${file:a:b}"))
    change = make_update(observed(secrets=("password",)), wish)
    (step,) = TYPE.steps(change, FACTS)
    assert step.payload["put"] == FrozenMap(password="${file:a:b}") and not step.payload["gone"]


def test_steps_have_an_order() -> None:
    """What halts comes before the configs, what runs after them, what restarts last."""
    live = observed(state="paused", failures=FrozenMap(tasks="failed"))
    steps = TYPE.steps(make_update(live, declared(config=FrozenMap(topic="u"))), FACTS)
    names = [step.request.name for step in steps]
    assert names == ["ConfigureConnectors", "ResumeConnectors", "RestartConnectors"]
    assert steps[2].after == (steps[1].id,) and steps[1].after == (steps[0].id,)
    live = observed(failures=FrozenMap(tasks="failed"))
    (step,) = TYPE.steps(make_update(live, declared(state="stopped")), FACTS)
    assert step.request.name == "HaltConnectors"
    assert set(step.paths) == {("state",), ("failures", "tasks")}


def test_offsets_are_carried_before_a_connector_runs() -> None:
    """After its creation or its new configs; a connector that runs has its own."""
    wish = declared(offsets_from="z")
    after = TYPE.target(wish, None, FACTS, False)
    identity = Identity("kafka_connect", KIND, "a")
    paths = compare(None, after, schema=TYPE.schema)
    create = Change(identity, "x", Action.CREATE, after=after, paths=paths)
    steps = TYPE.steps(create, FACTS)
    assert [s.request.name for s in steps] == [
        "CreateConnectors",
        "CarryOffsets",
        "ResumeConnectors",
    ]
    assert steps[0].payload["state"] == "stopped"
    assert not {("state",), ("offsets_from",)} & set(steps[0].paths)
    assert [effect.identity.key for effect in steps[1].alters] == ["z"]
    update = make_update(
        observed(state="stopped"), wish.with_items({"config": FrozenMap(topic="u")})
    )
    assert [s.request.name for s in TYPE.steps(update, FACTS)] == [
        "ConfigureConnectors",
        "CarryOffsets",
        "ResumeConnectors",
    ]
    assert not make_update(observed(), wish).paths


def test_bookkeeping_needs_no_request() -> None:
    """Owner and labels are in the state alone."""
    change = make_update(observed(), declared())
    owned = Change(
        change.identity,
        change.address,
        Action.UPDATE,
        before=change.before,
        after=change.after,
        paths=(PathChange(("owner",), None, "team"),),
    )
    assert TYPE.steps(owned, FACTS) == ()


def test_topics_are_found_in_the_configuration() -> None:
    """Of sinks and sources, the dead letter queue, and the group of a sink; names that no topic can
    have, MirrorMaker's lists and topics of other clusters are none."""
    config = FrozenMap({"topics": "b, a,a*", "errors.deadletterqueue.topic.name": "dlq"})
    assert [(use.key, use.verb) for use in list_uses(declared(config=config))] == [
        ("connect-a", "keeps its offsets in"),
        ("a", "reads"),
        ("b", "reads"),
        ("dlq", "sends what fails to"),
    ]
    written = Use("kafka_topic", "t", "writes to", rights=("Write",))
    assert list_uses(declared(config=TOPIC)) == (written,)
    mirror = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
    assert not list_uses(declared(class_=mirror, config=FrozenMap(topics="a")))
    other = FrozenMap({"topic": "t", "producer.override.bootstrap.servers": "b:9092"})
    assert not list_uses(declared(config=other))


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("4.3.1", (4, 3)),
        ("3.7.1.redhat-00003", (3, 7)),
        ("7.7.1-ccs", (3, 7)),
        ("8.0.0-ce", (4, 0)),
        ("6.2.0-ccs", (2, 8)),
        ("5.5.1-ccs", (2, 5)),
        ("unknown", None),
    ],
)
def test_a_version_means_a_release_of_kafka(version: str, release: tuple[int, int] | None) -> None:
    """Also in the numbers of Confluent Platform."""
    assert parse_release(version) == release
