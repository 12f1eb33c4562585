"""kafkaform.hcl in an editor, and the boundary of a folder while somebody types."""

from __future__ import annotations

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
