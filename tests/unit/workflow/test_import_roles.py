"""`import --all` writes roles, leaves the own login out, and divides what it writes by team."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Action
from kafkaform.core.value import FrozenMap
from kafkaform.plan.model import Options
from kafkaform.workflow.generate.files import render_stock
from kafkaform.workflow.import_all import import_all, read_tree
from kafkaform.workflow.operations import apply_changes
from kafkaform_kafka.kinds.acl.roles import recognize_roles
from kafkaform_kafka.memory import SimulatedCluster
from kafkaform_kafka.protocol.acl import parse_acl_key

from ...kit.commands.stocks import GENERATED, Desk, desk
from ...kit.simulated.engine import Screen

ROLES = """
resource "kafka_access" "producer" {
  principal = "User:writer"
  role      = "producer"
  topics    = ["orders", "audit"]
}
resource "kafka_access" "exactly" {
  principal                 = "User:exact"
  role                      = "transactional_producer"
  topic_prefixes            = ["shop."]
  transactional_id_prefixes = ["exact-"]
}
resource "kafka_access" "consumer" {
  principal = "User:reader"
  role      = "consumer"
  host      = "10.0.0.7"
  topics    = ["orders"]
  groups    = ["a", "b"]
}
resource "kafka_access" "streams" {
  principal         = "User:app"
  role              = "streams"
  topics            = ["orders"]
  group             = "app"
  transactional_ids = ["app-1"]
}
resource "kafka_access" "connect" {
  principal = "User:worker"
  role      = "connect"
  topics    = ["configs", "offsets", "status"]
  group     = "workers"
}
resource "kafka_access" "admin" {
  principal = "User:boss"
  role      = "admin"
  topics    = ["orders"]
  groups    = ["a"]
}
resource "kafka_access" "both_1" {
  principal = "User:both"
  role      = "producer"
  topics    = ["orders"]
}
resource "kafka_access" "both_2" {
  principal = "User:both"
  role      = "consumer"
  topics    = ["orders", "audit"]
  group     = "both"
}
"""


def make(tmp_path: Path, live: str) -> Desk:
    """A desk on a cluster where others have made everything of this configuration."""
    cluster = SimulatedCluster()
    for name in ("maker", "taker"):
        (tmp_path / name).mkdir()
    maker = desk(tmp_path / "maker", cluster)
    maker.write("live.kf.hcl", live)
    accept = Options(accept=("access-unproven", "access-opened"))
    apply_changes(maker.space(), options=accept, approve=Screen().approve)
    return desk(tmp_path / "taker", cluster)


def test_every_role_is_recognised(tmp_path: Path) -> None:
    """The blocks that are written are the roles that made the ACLs, and no ACL is left; their apply
    only imports, and leaves nothing to plan."""
    where = make(tmp_path, ROLES)
    text = where.generate()
    assert "kafka_acl" not in text
    assert text.count('resource "kafka_access"') == 8
    made = {d.address.name for d in where.space().desired.declared}
    assert made == {
        *("writer_producer", "exact_transactional_producer", "reader_consumer", "app_streams"),
        *("worker_connect", "boss_admin", "both_producer", "both_consumer"),
    }
    # The parts of a composite are adopted by the import of the whole.
    assert {change.action for change in where.plan().changes} == {Action.ADOPT}
    where.apply()
    assert not where.plan().effective


def test_terraform_has_no_roles(tmp_path: Path) -> None:
    """In a folder of Terraform's files each ACL has a block."""
    where = make(tmp_path, ROLES)
    space = where.space()
    stock = where.stock()
    tree = replace(read_tree(space), terraform=True)
    (text,) = render_stock(space.types, tree, stock).values()
    assert "kafka_access" not in text


@pytest.mark.parametrize(
    "keys",
    [
        ["User:a|*|Write|Allow|Topic|t|Literal"],
        [
            "User:a|*|Write|Allow|Topic|t|Literal",
            "User:a|*|Describe|Allow|Topic|t|Literal",
            "User:a|*|Alter|Allow|Topic|t|Literal",
        ],
        ["User:a|*|Write|Deny|Topic|t|Literal", "User:a|*|Describe|Deny|Topic|t|Literal"],
        ["User:a|*|Write|Allow|Topic|t|Literal", "User:b|*|Describe|Allow|Topic|t|Literal"],
        ["User:a|*|Write|Allow|Topic|t|Literal", "User:a|h|Describe|Allow|Topic|t|Literal"],
        ["User:a|*|Read|Allow|Group|g|Literal"],
    ],
)
def test_what_is_almost_a_role(keys: list[str]) -> None:
    """One operation less or more, a DENY, another principal or host: no role."""
    acls = [("kafka_acl", parse_acl_key(key).attributes) for key in keys]
    assert not recognize_roles(acls)


def test_groups_of_two_kinds_are_not_mixed() -> None:
    """A worker's group is not guessed among those of consumers."""
    keys = [f"User:a|*|{op}|Allow|Topic|t|Literal" for op in ("Read", "Describe")]
    keys += [
        f"User:a|*|{op}|Allow|Topic|c|Literal" for op in ("Read", "Write", "Create", "Describe")
    ]
    keys += [f"User:a|*|Read|Allow|Group|{name}|Literal" for name in "gh"]
    found = recognize_roles([("kafka_acl", parse_acl_key(key).attributes) for key in keys])
    assert found == [FrozenMap(principal="User:a", role="consumer", topics=("t",),
        groups=("g", "h"))]  # fmt: skip


OWN = """
resource "kafka_user_scram_credential" "all" {
  for_each        = toset(["admin", "ci"])
  username        = each.key
  scram_mechanism = "SCRAM-SHA-512"
  password        = secret_env("LIVE_PASSWORD")
}
resource "kafka_acl" "all" {
  for_each            = toset(["User:admin", "User:ci"])
  acl_principal       = each.key
  acl_host            = "*"
  acl_operation       = "All"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "orders"
}
"""


def test_the_own_login_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No block for the user that the command logs in as, nor for its ACLs; it says so."""
    monkeypatch.setenv("LIVE_PASSWORD", "secret")
    where = make(tmp_path, OWN)
    made = import_all(where.space())
    blocks = made.text.partition("\n\n")[2]
    assert "admin" not in blocks
    assert blocks.count("resource ") == 2
    assert len([gap for gap in made.gaps if "belong to User:admin" in gap]) == 2
    assert made.count == 2


TEAMS = """
resource "kafka_topic" "all" {
  for_each   = toset(split(" ", "shop.orders shop.audit pay_in pay-out one override.a override.b"))
  name       = each.key
  partitions = 1
}
resource "kafka_quota" "shop" {
  user   = "shop-app"
  config = { producer_byte_rate = 1024 }
}
"""


def test_one_text_for_each_team(tmp_path: Path) -> None:
    """Names that begin alike are together; what stands alone is in the main file. All files are one
    configuration, whose apply only imports."""
    where = make(tmp_path, TEAMS)
    made = import_all(where.space(), split=True)
    assert set(made.texts) == {"shop", "pay", "override"}
    assert "one" in made.text
    assert "shop.orders" in made.texts["shop"]
    assert "shop-app" in made.texts["shop"]
    assert "pay-out" in made.texts["pay"]
    where.write(GENERATED, made.text)
    for part, text in made.texts.items():
        where.write(f"generated-{part}.kf.hcl", text)
    assert {change.action for change in where.plan().changes} == {Action.IMPORT}
    assert len(where.plan().changes) == made.count == 8
