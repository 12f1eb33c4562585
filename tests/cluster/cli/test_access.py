"""A role in a configuration folder: what is said of the block holds for all of its ACLs."""

from __future__ import annotations

import pytest

from ...kit.commands.folder import Folder

AUTHORIZER = """
  authorizer {
    super_users     = ["User:admin"]
    allow_if_no_acl = false
  }
}
"""


class Role:
    """The role of a consumer, its topic and group named after the folder's prefix."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        file = folder.path / "provider.kf.hcl"
        file.write_text(file.read_text().rstrip().removesuffix("}") + AUTHORIZER)

    def declare(self, name: str = "app", group: str = "g", more: str = "") -> None:
        prefix = self.folder.prefix
        self.folder.write(
            "main.kf.hcl",
            f"""resource "kafka_access" "{name}" {{
  principal = "User:{prefix}app"
  role      = "consumer"
  topics    = ["{prefix}t"]
  group     = "{prefix}{group}"
}}
{more}""",
        )

    def parts(self, name: str = "app", group: str = "g") -> list[str]:
        """The addresses of the role's ACLs."""
        prefix = self.folder.prefix
        keys = (f"Describe|Topic|{prefix}t", f"Read|Group|{prefix}{group}", f"Read|Topic|{prefix}t")
        return [f'kafka_access.{name}/acl["{key}|Literal"]' for key in keys]

    def owned(self) -> list[str]:
        """All addresses in the state."""
        return self.folder.done("state", "list").out.splitlines()

    def settled(self) -> None:
        """The next plan has nothing to do."""
        said = self.folder.done("plan", "-detailed-exitcode")
        assert "No changes." in said.out


@pytest.fixture
def role(folder: Folder) -> Role:
    """A role that is applied."""
    made = Role(folder)
    made.declare()
    assert "3 added" in folder.done("apply", "-auto-approve").out
    return made


def destroyed(folder: Folder) -> None:
    folder.write("main.kf.hcl", 'output "none" {\n  value = 1\n}\n')
    clusters = ["--confirm", folder.broker.cluster_id]
    folder.done("destroy", *clusters)


def test_a_role_is_made_changed_and_destroyed(role: Role, folder: Folder) -> None:
    """Its ACLs are rows of the state; another group is another ACL, and nothing else changes."""
    assert role.owned() == role.parts()
    role.settled()
    role.declare(group="h")
    assert "1 added, 0 changed, 1 destroyed" in folder.done("apply", "-auto-approve").out
    assert role.owned() == role.parts(group="h")
    role.settled()
    destroyed(folder)
    assert role.owned() == []


def test_a_moved_block_moves_all_of_them(role: Role, folder: Folder) -> None:
    """Nothing is sent."""
    role.declare("other", more="moved {\n  from = kafka_access.app\n  to = kafka_access.other\n}\n")
    assert "0 added, 0 changed, 0 destroyed, 3 moved" in folder.done("apply", "-auto-approve").out
    assert role.owned() == role.parts("other")
    destroyed(folder)


def test_state_mv_moves_and_state_rm_lets_go_of_all_of_them(role: Role, folder: Folder) -> None:
    """The ACLs stay in the cluster, and an import block of the role takes them over again."""
    folder.done("state", "mv", "kafka_access.app", "kafka_access.other")
    assert role.owned() == role.parts("other")
    role.declare("other")
    role.settled()
    folder.done("state", "rm", "kafka_access.other")
    assert role.owned() == []
    said = folder.run("plan")
    assert said.text.count("it already exists, but kafkaform does not manage it") == 3
    block = 'import {{\n  to = kafka_access.other\n  id = "{}"\n}}\n'
    role.declare("other", more=block.format("kafka_access.app"))
    assert "Import id names 'kafka_access.app'" in folder.run("plan").text
    role.declare("other", more=block.format("kafka_access.other"))
    assert "3 adopted" in folder.done("apply", "-auto-approve").out
    assert role.owned() == role.parts("other")
    destroyed(folder)


def test_an_import_makes_what_is_missing(role: Role, folder: Folder) -> None:
    """A role of which only a part is there is taken over and made whole."""
    folder.done("state", "rm", "kafka_access.app")
    block = 'import {\n  to = kafka_access.app\n  id = "kafka_access.app"\n}\n'
    role.declare(group="h", more=block)
    assert "1 added, 0 changed, 0 destroyed, 2 adopted" in folder.done("apply", "-auto-approve").out
    role.settled()
    destroyed(folder)


def test_a_target_means_all_of_them(role: Role, folder: Folder) -> None:
    """And an exclusion, too."""
    role.declare(group="h", more=folder.topic("t"))
    assert (
        "Plan: 1 to add, 0 to change, 1 to destroy."
        in folder.done("plan", "-target=kafka_access.app").out
    )
    assert (
        "Plan: 1 to add, 0 to change, 0 to destroy."
        in folder.done("plan", "-exclude=kafka_access.app").out
    )
    role.declare()
    destroyed(folder)


@pytest.mark.parametrize(
    ("destroy", "counted"), [("true", "3 destroyed"), ("false", "3 forgotten")]
)
def test_a_removed_block_takes_all_of_them(
    role: Role, folder: Folder, destroy: str, counted: str
) -> None:
    """Out of the state, or out of the cluster as well."""
    said = f"  from = kafka_access.app\n  lifecycle {{\n    destroy = {destroy}\n  }}\n"
    removed = f"removed {{\n{said}}}\n"
    folder.write("main.kf.hcl", folder.topic("t") + removed)
    assert counted in folder.done("apply", "-auto-approve").out
    assert role.owned() == ["kafka_topic.t"]


def test_a_shared_acl_goes_with_its_last_owner(role: Role, folder: Folder) -> None:
    """A block of its own and a role own one ACL; it stays until neither declares it."""
    prefix = folder.prefix
    block = f"""resource "kafka_acl" "same" {{
  acl_principal       = "User:{prefix}app"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "{prefix}t"
}}
"""
    role.declare(more=block)
    assert "0 added, 1 changed, 0 destroyed" in folder.done("apply", "-auto-approve").out
    folder.write("main.kf.hcl", block)
    assert "0 added, 1 changed, 2 destroyed" in folder.done("apply", "-auto-approve").out
    assert role.owned() == ["kafka_acl.same"]
    role.settled()
    folder.write("main.kf.hcl", folder.topic("t"))
    assert "1 added, 0 changed, 1 destroyed" in folder.done("apply", "-auto-approve").out
