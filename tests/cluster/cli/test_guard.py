"""ACL changes on a real broker: what a plan says of rights, what it refuses, what can be accepted,
and what `explain access` answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from ...kit.commands.folder import Folder
from ...kit.kafka.logins import finish, new_login
from ...kit.kafka.sessions import wait_for_acls

PROVIDER = """
provider "kafka" {{
  bootstrap_servers = ["{servers}"]
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "SCRAM-SHA-256"
  sasl_username     = "{user}"
  sasl_password     = secret_env("OWN_PASSWORD")
  operation_timeout = "5s"
  {authorizer}
}}
"""
KNOWN = 'authorizer {\n  super_users = ["User:admin"]\n  allow_if_no_acl = false\n}'
OPEN = 'authorizer {\n  super_users = ["User:admin"]\n  allow_if_no_acl = true\n}'
WRONG = 'authorizer {\n  super_users = ["User:nobody"]\n  allow_if_no_acl = false\n}'
SECONDS = 60.0


class Acls:
    """A folder in which ACLs are declared; others work on the cluster too."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.app, self.me = f"User:{folder.prefix}app", f"{folder.prefix}me"

    def provider(self, authorizer: str, user: str = "") -> None:
        """Connect as the super user, or as the user of this folder."""
        if user:
            servers = self.folder.broker.bootstrap
            text = PROVIDER.format(servers=servers, user=user, authorizer=authorizer)
            self.folder.write("provider.kf.hcl", text)
            return
        self.folder.connect()
        file = self.folder.path / "provider.kf.hcl"
        file.write_text(file.read_text().rstrip().removesuffix("}") + authorizer + "\n}\n")

    def declare(self, *rows: tuple[str, str, str, str, str]) -> None:
        """Declare these ACLs and no others: address, principal, operation, type and name."""
        blocks = [
            f'resource "kafka_acl" "{address}" {{\n'
            f'  acl_principal       = "{who}"\n  acl_host            = "*"\n'
            f'  acl_operation       = "{operation}"\n  acl_permission_type = "Allow"\n'
            f'  resource_type       = "{kind}"\n  resource_name       = "{name}"\n}}\n'
            for address, who, operation, kind, name in rows
        ]
        self.folder.write("main.kf.hcl", "\n".join(blocks) or "# nothing\n")

    def read(self, address: str = "read", name: str = "") -> tuple[str, str, str, str, str]:
        """An ACL for the application to read a topic of this folder."""
        return (address, self.app, "Read", "Topic", f"{self.folder.prefix}{name or 'a'}")

    def grant(self, *bindings: AclBinding) -> None:
        finish(lambda: self.folder.admin.create_acls(list(bindings)))
        self.folder.until(lambda: all(self._there(binding) for binding in bindings))
        wait_for_acls(self.folder.broker, self.folder.admin, bindings)

    def revoke(self, *bindings: AclBinding) -> None:
        filters = [_filter(binding) for binding in bindings]
        finish(lambda: self.folder.admin.delete_acls(filters))
        self.folder.until(lambda: not any(self._there(binding) for binding in bindings))
        wait_for_acls(self.folder.broker, self.folder.admin, bindings, there=False)

    def _there(self, binding: AclBinding) -> bool:
        return bool(self.folder.admin.describe_acls(_filter(binding)).result(SECONDS))


def binding(who: str, operation: str, kind: str, name: str, pattern: str = "LITERAL") -> AclBinding:
    return AclBinding(
        {"Topic": ResourceType.TOPIC, "Cluster": ResourceType.BROKER}[kind],
        name,
        ResourcePatternType[pattern],
        who,
        "*",
        AclOperation[operation],
        AclPermissionType.ALLOW,
    )


def _filter(one: AclBinding) -> AclBindingFilter:
    where = (one.restype, one.name, one.resource_pattern_type)
    return AclBindingFilter(*where, one.principal, one.host, one.operation, one.permission_type)


@pytest.fixture
def acls(folder: Folder) -> Iterator[Acls]:
    """A folder of the super user; its ACLs are removed at the end."""
    made = Acls(folder)
    made.provider(KNOWN)
    yield made
    for who in (made.app, f"User:{made.me}"):
        everything = AclBindingFilter(
            ResourceType.ANY,
            None,
            ResourcePatternType.ANY,
            who,
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        finish(partial(folder.admin.delete_acls, [everything]))


@pytest.fixture
def own(acls: Acls, monkeypatch: pytest.MonkeyPatch) -> Iterator[Acls]:
    """The same for a user who may change and see ACLs because ACLs say so."""
    password = "own-secret-password"
    monkeypatch.setenv("OWN_PASSWORD", password)
    with new_login(acls.folder.broker, acls.me, password) as user:
        acls.grant(
            binding(user.principal, "ALTER", "Cluster", "kafka-cluster"),
            binding(user.principal, "DESCRIBE", "Cluster", "kafka-cluster"),
        )
        acls.provider(KNOWN, acls.me)
        yield acls


def adopted(acls: Acls, *rows: tuple[str, str, str, str, str]) -> None:
    """Declare ACLs, live ones too, and apply that."""
    acls.declare(*rows)
    acls.folder.done("apply", "-auto-approve", "-adopt=kafka_acl.*")


def test_a_plan_says_who_gains_and_loses(acls: Acls) -> None:
    """A new ACL names who gains what, a deleted one who loses it."""
    acls.declare(acls.read(), acls.read("b", "b"))
    said = acls.folder.done("plan").text
    assert f"{acls.app} gains Read, Describe on Topic {acls.folder.prefix}a" in said
    acls.folder.done("apply", "-auto-approve")
    acls.declare(acls.read("b", "b"))
    said = acls.folder.done("plan").text
    assert f"{acls.app} loses Read, Describe on Topic {acls.folder.prefix}a" in said


def test_nobody_saws_off_the_branch(own: Acls) -> None:
    """A plan that would delete the ACLs of its own user is refused and sends nothing."""
    who = f"User:{own.me}"
    mine = ("alter", who, "Alter", "Cluster", "kafka-cluster")
    adopted(own, mine, own.read())
    own.declare(own.read())
    said = own.folder.fails(8, "plan")
    assert f"it would take Alter on Cluster kafka-cluster from {who}" in said
    own.folder.fails(8, "apply", "-auto-approve")
    own.folder.fails(8, "apply", "-auto-approve", "-accept-open-access", "-accept-unproven-access")


def test_nobody_takes_his_own_sight_of_what_he_manages(own: Acls) -> None:
    """A DENY of one's own Describe on a managed topic is refused. Where a targeted plan cannot
    know that it is managed it can be accepted; what is hidden then names the ACL, and its deletion
    gives the sight back."""
    who, name = f"User:{own.me}", f"{own.folder.prefix}a"
    own.grant(binding(who, "ALL", "Topic", own.folder.prefix, "PREFIXED"))
    topic = (
        f'resource "kafka_topic" "a" {{\n  name = "{name}"\n  partitions = 1\n'
        "  replication_factor = 1\n}\n"
    )
    deny = (
        f'resource "kafka_acl" "deny" {{\n  acl_principal = "{who}"\n  acl_host = "*"\n'
        '  acl_operation = "Describe"\n  acl_permission_type = "Deny"\n'
        f'  resource_type = "Topic"\n  resource_name = "{name}"\n}}\n'
    )
    own.folder.write("main.kf.hcl", topic)
    own.folder.done("apply", "-auto-approve")
    own.folder.write("main.kf.hcl", topic + deny)
    said = own.folder.fails(8, "plan")
    assert f"it would take Describe on Topic {name} from {who}, which runs this plan" in said
    assert "no later plan could see kafka_topic.a" in said
    own.folder.fails(8, "apply", "-auto-approve", "-accept-unproven-access")
    only = ("apply", "-auto-approve", "-target=kafka_acl.deny")
    assert "if this state manages it" in own.folder.fails(8, *only)
    own.folder.done(*only, "-accept-unproven-access")
    said = own.folder.run("plan").text
    sentence = f'Deny {who} Describe on topic "{name}" from any host'
    assert f"{sentence} hides it (kafka_acl.deny)" in said
    own.folder.write("main.kf.hcl", topic)
    said = own.folder.run("plan").text
    assert "which this plan deletes: apply --target='kafka_acl.deny' first" in said
    own.folder.done(*only)
    assert "No changes" in own.folder.done("plan").text


def test_a_lock_out_that_appears_after_the_plan_is_found(own: Acls) -> None:
    """The reviewed plan was harmless because another ACL gave the same; now it is not there."""
    who = f"User:{own.me}"
    other = binding(who, "ALL", "Cluster", "kafka-cluster")
    own.grant(other)
    adopted(own, ("alter", who, "Alter", "Cluster", "kafka-cluster"), own.read())
    own.declare(own.read())
    own.folder.done("plan", "-out=plan.kfplan")
    own.revoke(other)
    assert "the world changed since the plan" in own.folder.fails(8, "apply", "plan.kfplan")


def test_a_plan_that_would_take_more_than_it_shows_is_refused(acls: Acls) -> None:
    """A deleted ACL took nothing while a prefix gave the same; without the prefix it does."""
    prefix = binding(acls.app, "ALL", "Topic", acls.folder.prefix, "PREFIXED")
    acls.grant(prefix)
    adopted(acls, acls.read(), acls.read("b", "b"))
    acls.declare(acls.read("b", "b"))
    said = acls.folder.done("plan", "-out=plan.kfplan").text
    assert "takes nothing: Allow " in said and " All on topics with prefix " in said
    token = acls.folder.approval()
    acls.revoke(prefix)
    said = acls.folder.fails(4, "apply", "plan.kfplan")
    assert "the plan would take more rights than it shows" in said
    assert f"{acls.app} loses Read, Describe on Topic {acls.folder.prefix}a" in said
    # Who reviewed the old plan approved no loss; who approves the new one has seen it.
    said = acls.folder.fails(4, "apply", "-expect", token)
    assert "what would be done differs" in said
    assert "loses Read" in acls.folder.done("apply", "-expect", acls.folder.approval()).text


def test_the_last_acl_of_a_resource_stays_unless_accepted(acls: Acls) -> None:
    """Where no ACL means that everybody may, deleting the last one needs a flag, on plan and
    apply alike, and the flag is part of the command that a review hands over."""
    acls.provider(OPEN)
    adopted(acls, acls.read(), acls.read("b", "b"))
    acls.folder.create("a")
    acls.declare(acls.read("b", "b"))
    said = acls.folder.fails(8, "plan")
    assert f"it is the last ACL of Topic {acls.folder.prefix}a" in said
    assert "--accept access-opened" in said
    acls.folder.fails(8, "apply", "-auto-approve")

    flag = "-accept-open-access"
    acls.folder.done("plan", flag, "-comment=review.md", "-out=plan.kfplan")
    token = acls.folder.approval(flag)
    review = (acls.folder.path / "review.md").read_text()
    assert f"kafkaform apply --expect {token} --accept=access-opened" in review
    acls.folder.fails(4, "apply", "-expect", token)
    assert "1 destroyed" in acls.folder.done("apply", "-expect", token, flag).out


def test_a_saved_plan_keeps_what_was_accepted(acls: Acls) -> None:
    """The flag belongs to the plan, so that applying its file needs no other."""
    acls.provider(OPEN)
    adopted(acls, acls.read(), acls.read("b", "b"))
    acls.folder.create("a")
    acls.declare(acls.read("b", "b"))
    acls.folder.done("plan", "-accept-open-access", "-out=plan.kfplan")
    assert "1 destroyed" in acls.folder.done("apply", "plan.kfplan").out


def test_a_cluster_that_decides_otherwise_is_not_trusted(acls: Acls) -> None:
    """Super users that are declared wrongly are noticed, because the cluster lets us do more than
    the ACLs explain; ACL changes then need a flag."""
    acls.provider(WRONG)
    acls.declare(acls.read())
    said = acls.folder.fails(8, "plan")
    assert "the cluster reports that User:admin may" in said
    assert "--accept access-unproven" in said
    acls.folder.fails(8, "apply", "-auto-approve")
    token = acls.folder.approval("-accept-unproven-access")
    said = acls.folder.done("apply", "-expect", token, "-accept-unproven-access").text
    assert "1 added" in said


# ── explain ─────────────────────────────────────────────────────────────────────────────


def explained(folder: Folder, *words: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(folder.done("explain", "access", *words, "--json").out)
    return found


def answers(document: dict[str, object]) -> Sequence[dict[str, str]]:
    found = document["answers"]
    assert isinstance(found, list)
    return found


def test_explain_names_the_acl_that_decides(acls: Acls) -> None:
    """One principal, one operation: yes or no, why, and every ACL of the resource."""
    topic = f"{acls.folder.prefix}a"
    acls.grant(
        binding(acls.app, "READ", "Topic", topic),
        binding(f"User:{acls.me}", "ALL", "Topic", topic[:-1], "PREFIXED"),
    )
    asked = ("--principal", acls.app, "--operation", "describe", "--topic", topic)
    said = acls.folder.done("explain", "access", *asked).out
    assert f'allowed  Allow {acls.app} Read on topic "{topic}" from any host' in said
    assert "2 ACLs of this resource" in said
    document = explained(acls.folder, *asked)
    assert document["kind"] == "access_explanation"
    assert document["format_version"] == "1.0"
    assert document["cluster_id"] == acls.folder.broker.cluster_id
    (answer,) = answers(document)
    assert (answer["verdict"], answer["rule"], answer["operation"]) == (
        "allowed",
        "acl",
        "Describe",
    )
    other = ("--principal", acls.app, "--operation", "Write", "--topic", topic)
    assert "none that allows it" in acls.folder.done("explain", "access", *other).out


def test_explain_lists_who_can(acls: Acls) -> None:
    """Without a principal all are listed who may, super users included."""
    topic = f"{acls.folder.prefix}a"
    acls.grant(binding(acls.app, "READ", "Topic", topic))
    found = answers(explained(acls.folder, "--operation", "Read", "--topic", topic))
    who = {(answer["principal"], answer["rule"]) for answer in found}
    assert {(acls.app, "acl"), ("User:admin", "super user")} <= who


def test_explain_says_what_it_does_not_know(acls: Acls) -> None:
    """Undeclared super users make a no uncertain, and the answer says how to declare them."""
    acls.provider("")
    asked = ("--principal", acls.app, "--operation", "Read", "--topic", acls.folder.prefix)
    said = acls.folder.done("explain", "access", *asked).text
    assert "unknown" in said
    assert "declare authorizer { super_users = […] }" in said
    sure = ("--super-user", "User:admin", "--no-allow-if-no-acl")
    (answer,) = answers(explained(acls.folder, *asked, *sure))
    assert answer["verdict"] == "denied"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--operation", "Read"), "exactly one resource"),
        (("--topic", "a", "--group", "b"), "exactly one resource"),
        (("--topic", "a", "--operation", "Raed"), 'Did you mean "Read"'),
        (("--cluster", "--operation", "Read"), "does not exist for resources of type Cluster"),
        (("--topic", "a", "--principal", "app"), "Write User:app."),
        (("--topic", "a", "--principal", ""), "Write User:NAME."),
        (("--topic", "a", "--principal", "User:"), "is no principal"),
        (("--topic", ""), "the name of the topic is empty"),
        (("topic", ""), "the name of the topic is empty"),
        (("topic", "a", "--topic", "a"), "exclude each other"),
        (("--topic", "a", "--host", "kafka.example.com"), "is not an IP address"),
    ],
)
def test_explain_refuses_what_makes_no_sense(acls: Acls, words: tuple[str, ...], said: str) -> None:
    """A wrong flag is told with what is right."""
    assert said in acls.folder.fails(1, "explain", "access", *words)
