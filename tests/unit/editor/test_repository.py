"""kafkaform.hcl in an editor, and the boundary of a folder while somebody types."""

from __future__ import annotations

import pytest
from pygls.exceptions import JsonRpcException

from ...kit.editor import Editor

NAME = "kafkaform.hcl"
FILE = """repository {
  name = "acme"
}

folders "teams/*" {
  boundary {
    topics = ["${folder.name}.*"]
  }
}
"""
SHOP = "teams/shop/main.kf.hcl"


def make_topic(name: str) -> str:
    return f'resource "kafka_topic" "a" {{\n  name = "{name}"\n}}\n'


def test_its_faults_are_shown(editor: Editor) -> None:
    """All of them, as the commands tell them."""
    editor.open(NAME, FILE.replace("name =", "nam =").replace("topics", "topic"))
    found = editor.wait_for_faults(NAME, lambda faults: len(faults) > 2)
    messages = "\n".join(fault.message for fault in found)
    assert 'repository has no argument "nam"' in messages
    assert 'boundary has no argument "topic"' in messages
    editor.type(NAME, FILE)
    assert editor.wait_for_faults(NAME, lambda faults: not faults) == []


def test_names_outside_are_faults_in_the_folder(editor: Editor) -> None:
    """The boundary that is typed counts, before it is saved."""
    editor.write(NAME, FILE)
    editor.open(SHOP, make_topic("billing.a"))
    (fault,) = editor.wait_for_faults(SHOP, lambda faults: "boundary" in str(faults))
    assert fault.message.startswith(
        'the topic "billing.a" is outside of the boundary of teams/shop'
    )
    editor.open(NAME, FILE.replace('"${folder.name}.*"', '"${folder.name}.*", "billing.*"'))
    editor.type(SHOP, make_topic("billing.b"))
    assert editor.wait_for_faults(SHOP, lambda faults: "boundary" not in str(faults)) is not None


def test_a_fault_of_several_folders_is_shown_once(editor: Editor) -> None:
    """In the open file that has it, and nowhere else: the repository file, or a module that two
    folders call."""
    editor.write(NAME, FILE)
    call = 'module "a" {\n  source = "../../modules/a"\n}\n'
    editor.open(SHOP, call)
    editor.open("teams/pay/main.kf.hcl", call + call.replace('"a" ', '"b" '))
    editor.open("modules/a/main.kf.hcl", 'output "a" {\n  value = lcoal.a\n}\n')
    assert len(editor.wait_for_faults("modules/a/main.kf.hcl", lambda faults: bool(faults))) == 1
    editor.open(NAME, FILE.replace("topics", "topic"))
    assert len(editor.wait_for_faults(NAME, lambda faults: bool(faults))) == 1
    assert not [uri for uri, faults in editor.faults.items() if ".." in uri and faults]
    editor.type(NAME, FILE)
    assert editor.wait_for_faults(NAME, lambda faults: not faults) == []


def test_blocks_and_arguments_are_offered(editor: Editor) -> None:
    """Also those of the provider that a cluster names."""
    assert set(editor.complete(NAME, "c|")) >= {"cluster", "folders", "repository"}
    assert {"state", "owner", "labels", "uses", "policies", "boundary"} <= set(
        editor.complete(NAME, 'folders "a/*" {\n  |\n}\n')
    )
    assert {"topics", "deny"} <= set(
        editor.complete(NAME, 'folders "a/*" {\n  boundary {\n    |\n  }\n}\n')
    )
    text = 'cluster "prod" {\n  provider = "kafka"\n  b|\n}\n'
    assert "bootstrap_servers" in editor.complete(NAME, text)


def test_words_are_explained(editor: Editor) -> None:
    """Arguments by their schema."""
    page = editor.hover(NAME, 'folders "a/*" {\n  own|er = "x"\n}\n')
    assert "The owner of objects whose block names none" in page


def test_it_is_formatted(editor: Editor) -> None:
    """As `kafkaform fmt` does."""
    editor.open(NAME, 'repository {\n  name="x"\n}\n')
    assert editor.format(NAME) == 'repository {\n  name = "x"\n}\n'


CLUSTERS = """repository {
  name = "acme"
}

cluster "prod" {
  provider          = "kafka"
  bootstrap_servers = ["kafka-1:9093"]
  sasl_username     = "ci"
  sasl_password     = secret_env("PASSWORD")
}

folders "teams/*" {
  uses = { kafka = cluster.prod }
}

folders "platform" {
  uses = { kafka = cluster.prod, "kafka.dr" = cluster.prod }
}
"""


def test_names_of_folders_and_clusters_are_offered(editor: Editor) -> None:
    """What the expressions of a `folders` block see, and nothing of a configuration."""
    start = CLUSTERS.partition("folders")[0]
    inside = start + 'folders "a/*" {\n  owner = '
    offers = editor.complete(NAME, inside + "|\n}\n")
    assert {"folder", "cluster", "upper"} <= set(offers)
    assert not {"var", "local", "module", "kafka_topic"} & set(offers)
    assert set(editor.complete(NAME, inside + "folder.|\n}\n")) == {"path", "name"}
    assert set(editor.complete(NAME, inside + '"${folder.|}"\n}\n')) == {"path", "name"}
    assert set(editor.complete(NAME, inside + "cluster.|\n}\n")) == {"prod"}
    uses = start + 'folders "a/*" {\n  uses = { '
    assert {"kafka", "schema_registry"} <= set(editor.complete(NAME, uses + "| }\n}\n"))
    assert set(editor.complete(NAME, uses + "kafka = | }\n}\n")) == {"cluster.prod"}
    assert set(editor.complete(NAME, uses + "kafka = cluster.| }\n}\n")) == {"prod"}


def test_a_configuration_has_no_such_names(editor: Editor) -> None:
    """They are words of the repository file."""
    editor.write(NAME, CLUSTERS)
    for word in ("folder", "cluster"):
        assert editor.complete(SHOP, make_topic("a") + f"locals {{\n  a = {word}.|\n}}\n") == {}
    inside = CLUSTERS.partition("folders")[0].replace('"ci"', "cluster.|")
    assert editor.complete(NAME, inside) == {}


def test_values_are_offered(editor: Editor) -> None:
    """Providers of a cluster, and what a boundary can deny."""
    assert set(editor.complete(NAME, 'cluster "a" {\n  provider = "|"\n}\n')) >= {"kafka"}
    denied = 'folders "a" {\n  boundary {\n    deny = ["|"]\n  }\n}\n'
    assert {"kafka_topic", "cluster ACLs"} <= set(editor.complete(NAME, denied))
    assert editor.complete(NAME, "name = |\n") != {}


def test_a_cluster_is_explained_and_found(editor: Editor) -> None:
    """How it is reached, without its login."""
    text = CLUSTERS.replace("cluster.prod }", "cluster.pr|od }", 1)
    page = editor.hover(NAME, text)
    assert "cluster `prod`" in page and 'provider = `"kafka"`' in page
    assert "kafka-1:9093" in page and "PASSWORD" not in page
    assert editor.define(NAME, text) == [f"{NAME}:5:prod"]
    assert len(editor.refer(NAME, text)) == 4
    page = editor.hover(NAME, 'folders "a/*" {\n  owner = folder.na|me\n}\n')
    assert "`folder.name`" in page
    assert editor.hover(NAME, CLUSTERS.replace("{ kafka", "{ ka|fka", 1)) == ""


def test_a_cluster_is_renamed(editor: Editor) -> None:
    """Its label and each use of it, from wherever the cursor is."""
    label = CLUSTERS.replace('"prod"', '"pr|od"')
    wanted = CLUSTERS.replace("prod", "main")
    assert editor.apply(editor.rename(NAME, label, "main")) == {NAME: wanted}
    use = CLUSTERS.replace("cluster.prod }", "cluster.|prod }", 1)
    assert editor.apply(editor.rename(NAME, use, "main")) == {NAME: wanted}


def test_a_taken_name_is_refused(editor: Editor) -> None:
    """And so is what is no name."""
    text = CLUSTERS + 'cluster "dr" {\n  provider = "kafka"\n}\n'
    for name, reason in (("dr", "The name is taken: cluster dr"), ("1", "is not a name")):
        with pytest.raises(JsonRpcException, match=reason):
            editor.rename(NAME, text.replace('"prod"', '"pr|od"'), name)


def test_names_inside_of_the_boundary_are_offered(editor: Editor) -> None:
    """What a name of the folder can begin with, for each argument that names something."""
    boundary = 'topics = ["${folder.name}.*", "all"]\n    principals = ["User:${folder.name}-*"]'
    editor.write(NAME, FILE.replace('topics = ["${folder.name}.*"]', boundary))
    offers = editor.complete(SHOP, make_topic("|"))
    assert {"shop.", "all"} == set(offers)
    assert editor.choose(SHOP, make_topic("sh|"), "shop.") == make_topic("shop.")
    user = 'resource "kafka_user_scram_credential" "a" {\n  username = "|"\n}\n'
    assert set(editor.complete(SHOP, user)) == {"shop-"}
    acl = 'resource "kafka_acl" "a" {\n  resource_type = "Topic"\n  resource_name = "|"\n}\n'
    assert set(editor.complete(SHOP, acl)) == {"shop.", "all"}
    assert editor.complete("other/main.kf.hcl", make_topic("|")) == {}
