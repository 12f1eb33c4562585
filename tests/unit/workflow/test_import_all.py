"""`import --all` on simulated clusters: the file declares what is there, and importing it changes
nothing."""

from __future__ import annotations

import re
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kafkaform.core.change import Action
from kafkaform.core.errors import Blocked, ConfigurationError, KafkaformError, UsageError
from kafkaform.core.resource import Depth
from kafkaform.core.value import FrozenMap, SecretRef
from kafkaform.syntax.write import NewBlock, format_text, write_blocks
from kafkaform.workflow.generate.blocks import fill_defaults
from kafkaform.workflow.generate.files import prove_files, render_stock
from kafkaform.workflow.import_all import ImportFilter, read_tree
from kafkaform_kafka.memory import SimulatedCluster, refused_items
from kafkaform_kafka.provider import TYPES

from ...kit.commands.stocks import GENERATED, PROVIDER, Desk, desk
from ...kit.quick import examples
from ...test_cases import cluster_of

CONFIGS = {
    "retention.ms": ["-1", "3600000", "604800000"],
    "cleanup.policy": ["compact", "delete", "compact,delete"],
    "min.insync.replicas": ["1", "2"],
    "compression.type": ["zstd", "lz4"],
}
TOPIC: dict[str, Any] = {"partitions": 3}


def worlds() -> st.SearchStrategy[dict[str, dict[str, Any]]]:
    """Topics by name, as `cluster_of` takes them."""
    names = st.text("abAB019._-", min_size=1, max_size=8).filter(lambda n: n not in (".", ".."))
    config = st.fixed_dictionaries(
        {}, optional={key: st.sampled_from(values) for key, values in CONFIGS.items()}
    )
    topic = st.fixed_dictionaries(
        {"partitions": st.integers(1, 4), "replication_factor": st.integers(1, 3)},
        optional={"config": config},
    )
    # "a.b" and "a_b" cannot live together.
    return st.dictionaries(names, topic, max_size=8).filter(
        lambda topics: len({name.replace(".", "_") for name in topics}) == len(topics)
    )


def objects() -> st.SearchStrategy[list[NewBlock]]:
    """Blocks of every type but topics, each at most once."""
    names = st.sampled_from(["ci", "bob", "a|b", "CN=x,O=y", 'q"uote', "${not.code}", "ünï"])
    acl = st.builds(
        lambda who, host, operation, permission, name, pattern: {
            "acl_principal": f"User:{who}",
            "acl_host": host,
            "acl_operation": operation,
            "acl_permission_type": permission,
            "resource_type": "Topic",
            "resource_name": name,
            "resource_pattern_type_filter": pattern,
        },
        names,
        st.sampled_from(["*", "10.0.0.1"]),
        st.sampled_from(["Read", "Write", "Describe"]),
        st.sampled_from(["Allow", "Deny"]),
        st.sampled_from(["orders", "orders.", "*"]),
        st.sampled_from(["Literal", "Prefixed"]),
    ).filter(lambda acl: (acl["resource_name"], acl["resource_pattern_type_filter"])
        != ("*", "Prefixed"))  # fmt: skip
    limits = st.sampled_from(
        [{"producer_byte_rate": 1024}, {"request_percentage": Decimal("12.5")}]
    )
    quota = st.builds(
        lambda entity, config: {**entity, "config": FrozenMap(config)},
        st.sampled_from(["user", "client_id"]).flatmap(
            lambda part: st.builds(lambda name: {part: name}, names | st.just("default"))
        ),
        limits,
    )
    user = st.builds(
        lambda name, mechanism, rounds: {
            "username": name,
            "scram_mechanism": mechanism,
            "scram_iterations": rounds,
            "password": SecretRef("env", "PW"),
        },
        names,
        st.sampled_from(["SCRAM-SHA-256", "SCRAM-SHA-512"]),
        st.sampled_from([4096, 8192]),
    )
    group = st.builds(
        lambda name, config: {"group": name, "config": FrozenMap(config)},
        st.sampled_from(["g", "h.i"]),
        st.sampled_from(
            [{"consumer.session.timeout.ms": "50000"}, {"share.auto.offset.reset": "earliest"}]
        ),
    )
    cluster = st.just({"config": FrozenMap({"log.cleaner.threads": "2"})})
    broker = st.builds(
        lambda number: {"broker_id": number, "config": FrozenMap({"log.cleaner.threads": "2"})},
        st.integers(1, 3),
    )
    kinds = {
        "kafka_acl": acl,
        "kafka_quota": quota,
        "kafka_user_scram_credential": user,
        "kafka_group_config": group,
        "kafka_cluster_config": cluster,
        "kafka_broker_config": broker,
    }
    one = st.one_of([st.tuples(st.just(kind), made) for kind, made in kinds.items()])
    return st.lists(one, max_size=8, unique_by=_key_of).map(
        lambda found: [
            NewBlock("resource", (kind, f"r{number}"), attributes)
            for number, (kind, attributes) in enumerate(found)
        ]
    )


def _key_of(pair: tuple[str, dict[str, Any]]) -> tuple[str, str]:
    kind, attributes = pair
    return kind, TYPES[kind].key(fill_defaults(FrozenMap(attributes), TYPES[kind].schema))


def live(where: Desk) -> dict[str, Any]:
    """Every topic that is there, as a plan sees it."""
    space = where.space()
    session = space.providers["kafka"].open("kafka", space.desired.providers["kafka"].config, {})

    items = session.sweep("kafka_topic", Depth.FULL).items
    return {item.identity.key: item.attributes for item in items}


@given(topics=worlds())
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_written_is_the_world(topics: dict[str, dict[str, Any]]) -> None:
    """For any cluster: the file declares exactly its topics, the plan only imports them, and
    after the apply no plan has anything to do."""
    with tempfile.TemporaryDirectory() as path:
        where = desk(Path(path), cluster_of(topics=topics))
        before = live(where)
        text = where.generate()
        assert format_text(text) == text
        declared = {d.identity.key: d.attributes for d in where.space().desired.declared}
        assert declared.keys() == topics.keys()
        for name, attributes in declared.items():
            for said in ("partitions", "replication_factor"):
                assert attributes[said] == before[name][said]
            assert (attributes["config"] or {}) == before[name]["config"]
        plan = where.apply()
        assert all(change.action is Action.IMPORT and not change.steps for change in plan.changes)
        assert len(plan.changes) == len(topics)
        assert where.plan().changes == ()
        assert live(where) == before


@given(blocks=objects())
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_kind_is_written(blocks: list[NewBlock]) -> None:
    """ACLs, quotas, users and configs that one folder made are declared by the other's file; its
    plan only imports them, and then there is nothing to do."""
    with tempfile.TemporaryDirectory() as path, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PW", "pw-of-nobody")
        cluster = cluster_of()
        (Path(path) / "other").mkdir()
        maker = desk(Path(path) / "other", cluster)
        maker.write("made.kf.hcl", write_blocks(blocks))
        maker.apply()
        made = {d.identity for d in maker.space().desired.declared}
        where = desk(Path(path), cluster)
        text = where.generate()
        assert format_text(text) == text
        assert {d.identity for d in where.space().desired.declared} == made
        plan = where.apply()
        assert all(change.action is Action.IMPORT and not change.steps for change in plan.changes)
        assert len(plan.changes) == len(blocks)
        assert where.plan().changes == ()
        assert maker.plan().changes == ()


def test_amounts_are_calls_only_where_the_language_is_ours(tmp_path: Path) -> None:
    """Terraform, which may read the same files, has no function for a time."""
    topic = {**TOPIC, "config": {"retention.ms": "3600000"}}
    where = desk(tmp_path, cluster_of(topics={"x": topic}))
    space, stock = where.space(), where.stock()
    tree = read_tree(space)
    assert '"retention.ms" = retention("1h")' in render_stock(space.types, tree, stock)[""]
    text = render_stock(space.types, replace(tree, terraform=True), stock)[""]
    assert '"retention.ms" = "3600000"' in text


LOG_COMMANDS = ("##vso[task.setvariable variable=x]y", "##[error]x", "##teamcity[message text='x']")


def test_names_are_no_commands_of_build_logs(tmp_path: Path) -> None:
    """Principals, limits and keys that a build log would obey: the text, which goes to standard
    output, says them by an escape, and the objects are still exactly those."""
    cluster = cluster_of()
    (tmp_path / "other").mkdir()
    maker = desk(tmp_path / "other", cluster)
    acl = {
        "resource_name": "g",
        "resource_type": "Group",
        "acl_host": "*",
        "acl_operation": "Read",
        "acl_permission_type": "Allow",
    }
    blocks = [
        NewBlock("resource", ("kafka_acl", f"a{number}"), {**acl, "acl_principal": f"User:{text}"})
        for number, text in enumerate(LOG_COMMANDS)
    ]
    blocks += [
        NewBlock(
            "resource",
            ("kafka_quota", f"q{number}"),
            {"client_id": text, "config": FrozenMap(producer_byte_rate=Decimal(1000))},
        )
        for number, text in enumerate(LOG_COMMANDS)
    ]
    maker.write("made.kf.hcl", write_blocks(blocks))
    maker.apply()
    where = desk(tmp_path, cluster)
    text = where.generate()
    assert not re.search(r"##\w*\[", text), text
    plan = where.apply()
    assert len(plan.changes) == len(blocks)
    assert {change.action for change in plan.changes} == {Action.IMPORT}

    key = f"{LOG_COMMANDS[0]}$${{x}}\\u0008"
    where.write(
        GENERATED,
        'resource "kafka_topic" "t" {\n'
        f'  for_each   = {{ "{key}" = "a" }}\n  name       = each.value\n  partitions = 1\n}}\n',
    )
    where.lose_state()
    where.apply()
    where.lose_state()
    (where.path / GENERATED).rename(where.path / "topics.kf.hcl")
    text = where.generate()
    assert 'to = kafka_topic.t["' in text and not re.search(r"##\w*\[", text), text


def test_same_world_same_text(tmp_path: Path) -> None:
    """The text does not depend on the order in which the cluster lists its topics."""
    names = ["shop.b", "shop.a", "pay.x", "pay.y"]
    texts = []
    for number, order in enumerate((names, names[::-1])):
        (tmp_path / str(number)).mkdir()
        where = desk(tmp_path / str(number), cluster_of(topics=dict.fromkeys(order, TOPIC)))
        texts.append(where.generate())
    assert texts[0] == texts[1]


def test_a_lost_state_loses_nothing(tmp_path: Path) -> None:
    """State and log deleted: import blocks for the declared topics, blocks for the others, one
    apply, and everything is recorded as before."""
    where = desk(tmp_path, cluster_of(topics={"foreign": TOPIC}))
    where.write(
        "topics.kf.hcl",
        'resource "kafka_topic" "shop" {\n  for_each = toset(["a", "b"])\n'
        '  name = "shop.${each.key}"\n  partitions = 2\n  replication_factor = 1\n}\n',
    )
    where.apply()
    where.lose_state()
    text = where.generate()
    assert 'to = kafka_topic.shop["a"]' in text
    assert text.count("resource ") == 1
    plan = where.apply()
    assert {change.action for change in plan.changes} == {Action.IMPORT}
    state = where.backend.load().state
    assert state is not None
    assert {identity.key for identity in state.objects} == {"shop.a", "shop.b", "foreign"}
    assert where.plan().changes == ()


def test_parts_of_a_role_are_adopted(tmp_path: Path) -> None:
    """The ACLs that a role stands for belong to no import block: after a loss of the state the
    command says how they are taken over, and writes no blocks for them."""
    where = desk(tmp_path, cluster_of())
    where.write(
        "roles.kf.hcl",
        'resource "kafka_access" "reader" {\n  principal = "User:ci"\n  role      = "consumer"\n'
        '  topics    = ["orders"]\n  groups    = ["g"]\n}\n',
    )
    where.apply()
    where.lose_state()
    stock = where.stock()
    assert (stock.undeclared, stock.declared) == ((), ())
    (gap,) = [gap for gap in stock.gaps if "--adopt" in gap]
    assert "--adopt='kafka_access.reader'" in gap
    where.apply("kafka_access.reader")
    assert where.plan().changes == ()


def test_what_is_known_is_left_out(tmp_path: Path) -> None:
    """Recorded topics, internal ones, and those whose configs a block declares are not written."""
    topics = {"__consumer_offsets": TOPIC, "mine": TOPIC, "other": {**TOPIC, "config": {
        "retention.ms": "3600000"}}}  # fmt: skip
    where = desk(tmp_path, cluster_of(topics=topics))
    where.write(
        "more.kf.hcl",
        'resource "kafka_topic" "mine" {\n  name = "mine"\n'
        "  lifecycle {\n    adopt = true\n  }\n}\n"
        'resource "kafka_topic_config" "other" {\n  topic = "other"\n'
        '  config = { "retention.ms" = "3600000" }\n  lifecycle {\n    adopt = true\n  }\n}\n',
    )
    where.apply()
    assert where.stock().count == 0
    where.lose_state()
    stock = where.stock()
    assert stock.undeclared == ()
    assert {str(address) for address, _ in stock.declared} == {
        "kafka_topic.mine",
        "kafka_topic_config.other",
    }
    where.generate()
    where.apply()
    assert where.plan().changes == ()


def test_match_and_type_choose(tmp_path: Path) -> None:
    """Only what --match and --type name is written; a type that nobody lists is refused."""
    where = desk(tmp_path, cluster_of(topics=dict.fromkeys(["shop.a", "shop.b", "pay.a"], TOPIC)))
    chosen = where.stock(ImportFilter(("kafka_topic",), ("shop.*",)))
    assert [item.identity.key for item in chosen.undeclared] == ["shop.a", "shop.b"]
    with pytest.raises(UsageError) as caught:
        where.stock(ImportFilter(("kafka_topics",)))
    assert "Did you mean" in caught.value.advice


def test_exclude_leaves_out(tmp_path: Path) -> None:
    """--exclude counts more than --match."""
    where = desk(tmp_path, cluster_of(topics=dict.fromkeys(["shop.a", "shop.b", "pay.a"], TOPIC)))
    chosen = where.stock(ImportFilter(match=("shop.*",), exclude=("*.b", "x*")))
    assert [item.identity.key for item in chosen.undeclared] == ["shop.a"]


def test_what_others_make_for_themselves(tmp_path: Path) -> None:
    """It is listed by name and owner and not written, unless somebody asks for it."""
    names = ["orders", "_schemas", "heartbeats", "west.heartbeats"]
    where = desk(tmp_path, cluster_of(topics=dict.fromkeys(names, TOPIC)))
    stock = where.stock()
    assert [item.identity.key for item in stock.undeclared] == ["orders"]
    assert [gap for gap in stock.gaps if gap.startswith("Left out")] == [
        "Left out: 2 of kafka_topic, made by MirrorMaker, as the name says: heartbeats, "
        "west.heartbeats. --include-owned writes them too.",
        "Left out: 1 of kafka_topic, made by a schema registry, as the name says: _schemas. "
        "--include-owned writes them too.",
    ]
    assert len(where.stock(ImportFilter(owned=True)).undeclared) == 4


def test_what_is_hidden_is_said(tmp_path: Path) -> None:
    """A user who may describe one topic, and read the configs of none, learns that there may be
    more, and which one could not be read; nothing is written for it."""
    where = desk(
        tmp_path,
        cluster_of(
            topics={"seen": TOPIC, "hidden": TOPIC}, users={"bob": [("Describe", "topic:seen")]}
        ),
        "bob",
    )
    stock = where.stock()
    assert stock.undeclared == ()
    assert any("User:bob can see" in gap for gap in stock.gaps)
    assert any("are listed but cannot be read: seen" in gap for gap in stock.gaps)


def test_a_failed_listing_is_no_empty_cluster(tmp_path: Path) -> None:
    """A listing that fails is reported as such, with its reason."""
    cluster = cluster_of(topics={"a": TOPIC})
    where = desk(tmp_path, cluster)
    cluster.faults.schedule(refused_items(31), "ListTopics", times=100)
    stock = where.stock(ImportFilter(("kafka_topic",)))
    assert stock.failed
    assert stock.undeclared == ()
    assert any("could not be listed" in gap for gap in stock.gaps)


def test_a_cluster_without_an_authorizer_has_no_acls(tmp_path: Path) -> None:
    """Where ACLs are switched off nothing is missing; who asks for them by type is told."""
    cluster = cluster_of(topics={"a": TOPIC})
    where = desk(tmp_path, cluster)
    cluster.faults.schedule(refused_items(54), "ListAcls", times=100)
    cluster.faults.schedule(refused_items(54), "DescribeAcls", times=100)
    every, acls = where.stock(), where.stock(ImportFilter(("kafka_acl",)))
    assert (every.count, every.failed, acls.count, acls.failed) == (1, False, 0, False)
    assert not any("kafka_acl" in gap for gap in every.gaps)
    (gap,) = acls.gaps
    assert gap.startswith("kafka_acl: the cluster has no authorizer")


@pytest.mark.parametrize(
    ("release", "kind", "failed"),
    [
        ("3.6", "kafka_client_metrics", False),
        ("3.6", "kafka_group_config", False),
        ("4.0", "kafka_group_config", True),
    ],
)
def test_what_a_version_does_not_have_is_no_failed_listing(
    tmp_path: Path, release: str, kind: str, failed: bool
) -> None:
    """Kafka 3.6 has no configs of groups and no subscriptions, so that nothing of them can be
    missing, and only somebody who asks for them by type is told. Kafka 4.0 has configs of groups
    and cannot list them: there can be more."""
    where = desk(tmp_path, SimulatedCluster(kafka_version=release))
    every = where.stock()
    assert (every.failed, every.count) == (failed, 0)
    assert any(kind in gap for gap in every.gaps) is failed
    (gap,) = where.stock(ImportFilter((kind,))).gaps
    assert gap.startswith("Not complete: ") is failed
    assert f"the cluster runs Kafka {release}; " in gap and "exist since Kafka" in gap


def test_names_do_not_collide(tmp_path: Path) -> None:
    """Generated blocks and locals keep away from those of the folder and from each other."""
    where = desk(tmp_path, cluster_of(topics={"a.b": TOPIC, "A.b": {"partitions": 1, "config": {
        "retention.ms": "1000"}}, "x.1": TOPIC, "x.2": TOPIC}))  # fmt: skip
    where.write(
        "own.kf.hcl",
        'resource "kafka_topic" "a_b" {\n  name = "own"\n  partitions = 1\n}\n'
        "locals {\n  kafka_topic_topics = 1\n}\n",
    )
    text = where.generate()
    assert 'resource "kafka_topic" "a_b_2"' in text
    assert "kafka_topic_topics_2 = {" in text or "kafka_topic_topics_2 = toset" in text
    assert {d.identity.key for d in where.space().desired.declared} == {
        "own", "a.b", "A.b", "x.1", "x.2"
    }  # fmt: skip


def test_two_instances_of_one_cluster(tmp_path: Path) -> None:
    """Two provider instances that lead to one cluster are refused: by import, plan and apply."""
    where = desk(tmp_path, cluster_of(topics={"a": TOPIC, "b": TOPIC}))
    where.write("main.kf.hcl", PROVIDER + PROVIDER.replace("{\n", '{\n  alias = "eu"\n', 1))
    block = 'resource "kafka_topic" "%s" {\n  provider = %s\n  name = "%s"\n}\n'
    where.write("a.kf.hcl", block % ("a", "kafka", "a") + block % ("b", "kafka.eu", "b"))
    for command in (where.generate, where.plan, where.apply):
        with pytest.raises(ConfigurationError, match="are the same cluster, simulated") as refused:
            command()
        assert '"kafka" (main.kf.hcl:1:1, localhost:9092)' in refused.value.message
        assert '"kafka.eu" (main.kf.hcl:4:1, localhost:9092)' in refused.value.message
        assert "state rm" in refused.value.advice


def test_the_instance_is_named(tmp_path: Path) -> None:
    """Objects of an instance with an alias say so."""
    where = desk(tmp_path, cluster_of(topics={"a": TOPIC}))
    where.write("main.kf.hcl", PROVIDER.replace("{\n", '{\n  alias = "eu"\n', 1))
    assert "provider           = kafka.eu" in where.generate()
    where.apply()
    assert where.plan().changes == ()


def test_what_is_written_is_proven(tmp_path: Path) -> None:
    """A text that does not declare what was found is never handed out."""
    where = desk(tmp_path, cluster_of(topics={"a": TOPIC, "b": {"partitions": 1}}))
    space = where.space()
    stock = where.stock()
    tree = read_tree(space)
    text = render_stock(space.types, tree, stock)[""]
    prove_files(space.configuration, tree, {"": text}, stock, GENERATED)
    more = 'resource "kafka_topic" "more" {\n  name = "more"\n}\n'
    for wrong in (text.replace("= 3", "= 4"), text.replace('"a"', '"c"'), text + "}", text + more):
        with pytest.raises(KafkaformError):
            prove_files(space.configuration, tree, {"": wrong}, stock, GENERATED)


def test_topics_of_applications_whose_names_begin_like_kafkas_own(tmp_path: Path) -> None:
    """`__debezium-heartbeat` is taken over like any topic; Kafka's own is left out, both where it
    is only live and where a block declares it and the state is lost."""
    cluster = cluster_of(topics={"__debezium-heartbeat.x": TOPIC, "__consumer_offsets": TOPIC})
    where = desk(tmp_path, cluster)
    found = {
        one.identity.key for one in where.stock().undeclared if one.identity.kind == "kafka_topic"
    }
    assert found == {"__debezium-heartbeat.x"}
    lines = (
        f'resource "kafka_topic" "t{n}" {{\n  name = "{name}"\n  partitions = 3\n}}\n'
        for n, name in enumerate(("__debezium-heartbeat.x", "__consumer_offsets"))
    )
    where.write("declared.kf.hcl", "".join(lines))
    assert [str(address) for address, _ in where.stock().declared] == ["kafka_topic.t0"]


def test_an_internal_topic_is_left_alone_and_the_rest_is_applied(tmp_path: Path) -> None:
    """Declared, live or not, adopted or imported: no internal topic is created, taken over or
    changed, and it holds up nothing else."""
    cluster = cluster_of(topics={"__consumer_offsets": TOPIC})
    where = desk(tmp_path, cluster)
    names = ("__consumer_offsets", "__transaction_state", "__heartbeat")
    where.write(
        "main.kf.hcl",
        PROVIDER
        + "".join(
            f'resource "kafka_topic" "{name.strip("_")}" {{\n  name = "{name}"\n  partitions = 5\n'
            "  lifecycle {\n    adopt = true\n  }\n}\n"
            for name in names
        )
        + 'import {\n  to = kafka_topic.consumer_offsets\n  id = "__consumer_offsets"\n}\n',
    )
    with pytest.raises(Blocked, match="2 objects are blocked and left as they are"):
        where.apply()
    blocked = {c.identity.key: c.blocked for c in where.plan().changes if c.blocked is not None}
    assert blocked.keys() == {"__consumer_offsets", "__transaction_state"}
    assert all("internal topic" in b.text and b.unmet for b in blocked.values())
    assert set(cluster.topics) == {"__consumer_offsets", "__heartbeat"}
    assert len(cluster.topics["__consumer_offsets"].assignment) == 3
