"""Completion and explanations, in texts that parse and in texts that somebody is still typing."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types

from kafkaform.workflow.stores import AUDIT_FILE

from ...kit.audit_story import written
from ...kit.editor import Editor

FILE = "main.kf.hcl"
PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["localhost:9092"]\n}\n'
TOPIC = 'resource "kafka_topic" "orders" {\n  name = "orders"\n}\n'


def read_doc(item: types.CompletionItem) -> str:
    assert isinstance(item.documentation, types.MarkupContent)
    return item.documentation.value


def test_types_of_blocks_are_offered_by_the_kind_of_file(editor: Editor) -> None:
    """Each with what it is for; a test file has other blocks, and so has a file of policies."""
    found = editor.complete(FILE, PROVIDER + "re|\n" + TOPIC)
    assert {"resource", "removed", "provider", "locals", "moved"} <= set(found)
    assert "run" not in found
    assert "manages" in read_doc(found["resource"])
    blocks = {"run", "given", "outputs", "simulate", "variables"}
    assert set(editor.complete("a.kftest.hcl", "r|")) == blocks
    assert set(editor.complete("a.kfpolicy.hcl", "|")) == {"policy", "policy_set"}


@pytest.mark.parametrize("rest", ["", "}\n", " {\n}\n" + TOPIC])
def test_types_of_resources_are_offered_in_the_label(editor: Editor, rest: str) -> None:
    """Of every installed provider, with their documentation, whatever follows."""
    found = editor.complete(FILE, f'{PROVIDER}resource "kafka_to|{rest}')
    assert {"kafka_topic", "kafka_quota", "schema_registry_schema"} <= set(found)
    assert "A topic with its partitions" in read_doc(found["kafka_topic"])
    made = editor.choose(FILE, f'resource "kafka_to|" "a" {{\n{rest}', "kafka_topic")
    assert made.startswith('resource "kafka_topic" "a" {')
    assert {"kafka_topics", "kafkaform_outputs"} <= set(editor.complete(FILE, 'data "|'))


def test_arguments_are_those_of_the_type_without_those_that_are_given(editor: Editor) -> None:
    """With type, default and meaning; required ones come first; what the server sets is not an
    argument."""
    found = editor.complete(FILE, TOPIC.replace("}\n", "  par|\n}\n"))
    assert {"partitions", "config", "config_mode", "for_each", "lifecycle"} <= set(found)
    assert not {"name", "topic_id", "bootstrap_servers"} & set(found)
    assert "default `authoritative`" in read_doc(found["config_mode"])
    made = editor.choose(FILE, TOPIC.replace("}\n", "  par|\n}\n"), "partitions")
    assert made == TOPIC.replace("}\n", "  partitions = \n}\n")
    provider = editor.complete(FILE, 'provider "kafka" {\n  |\n}\n')
    assert provider["bootstrap_servers"].detail == "required"
    assert "alias" in provider


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('resource "kafka_topic" "a" {\n  lifecycle {\n    |', "prevent_destroy"),
        ('resource "kafka_acl" "a" {\n  lifecycle {\n    |', "shared"),
        ('variable "a" {\n  |\n}\n', "validation"),
        ('variable "a" {\n  validation {\n    |\n  }\n}\n', "error_message"),
        ('output "a" {\n  |', "value"),
        ("moved {\n  |\n}\n", "from"),
        ("removed {\n  lifecycle {\n    |", "destroy"),
        ('check "a" {\n  data "kafka_topic" "b" {\n    |', "name"),
        ('data "kafkaform_outputs" "b" {\n  |', "folder"),
        ('policy "a" {\n  |', "condition"),
    ],
)
def test_blocks_of_the_language_have_their_arguments(
    editor: Editor, text: str, wanted: str
) -> None:
    """Nested ones too, also before their closing braces are typed."""
    found = editor.complete(FILE, text)
    assert wanted in found and read_doc(found[wanted])


@pytest.mark.parametrize("end", ["", "\n  }\n}\n"])
def test_config_keys_have_their_documentation_default_and_unit(editor: Editor, end: str) -> None:
    """In quotes and without; keys that are there are not offered again."""
    before = TOPIC.replace("}\n", '  config = {\n    "cleanup.policy" = "compact"\n    ')
    found = editor.complete(FILE, f"{before}ret|{end}")
    assert "cleanup.policy" not in found
    page = read_doc(found["retention.ms"])
    assert "How long records are kept" in page
    assert "unit `ms`" in page and "default `604800000`" in page and "from -1 ms" in page
    made = editor.choose(FILE, f'{before}"retention.m|"{end}', "retention.ms")
    assert made == f'{before}"retention.ms"{end}'
    made = editor.choose(FILE, f"{before}ret|{end}", "retention.ms")
    assert made == f'{before}"retention.ms" = {end}'


@pytest.mark.parametrize(
    ("kind", "argument", "key"),
    [
        ("kafka_topic_config", "config", "segment.bytes"),
        ("kafka_broker_config", "config", "log.retention.ms"),
        ("kafka_broker_config", "secret_config", "ssl.keystore.password"),
        ("kafka_cluster_config", "config", "background.threads"),
        ("kafka_group_config", "config", "share.session.timeout.ms"),
        ("kafka_client_metrics", "config", "interval.ms"),
        ("kafka_quota", "config", "producer_byte_rate"),
    ],
)
def test_every_kind_of_config_has_its_keys(
    editor: Editor, kind: str, argument: str, key: str
) -> None:
    """Each with a meaning."""
    found = editor.complete(FILE, f'resource "{kind}" "a" {{\n  {argument} = {{\n    |')
    assert read_doc(found[key]).partition("\n\n")[2]


def test_values_that_are_the_only_ones_are_offered(editor: Editor) -> None:
    """Of an attribute and of a config, in quotes; true and false of a switch."""
    before = TOPIC.replace("}\n", "  ")
    assert set(editor.complete(FILE, f'{before}config_mode = "|"\n}}\n')) == {
        "authoritative",
        "additive",
    }
    found = editor.complete(FILE, f'{before}config = {{ "compression.type" = "|" }}\n}}\n')
    assert {"zstd", "lz4", "producer"} <= set(found)
    assert '"additive"' in editor.complete(FILE, f"{before}config_mode = |\n}}\n")
    assert "true" in editor.complete(FILE, f"{before}managed_replication_factor = |\n}}\n")


def test_functions_and_references_are_offered_in_expressions(editor: Editor) -> None:
    """Functions with their usage; `each` only where it exists; inside of calls and templates,
    too."""
    found = editor.complete(FILE, 'locals {\n  a = upper(join(",", |\n}\n')
    assert "`format(template, values...)`" in read_doc(found["format"]) or "format" in found
    assert {"var", "local", "true", "null"} <= set(found) and "each" not in found
    text = 'resource "kafka_topic" "a" {\n  for_each = {}\n  name = "x.${|}"\n}\n'
    assert {"each", "kafka_topic"} <= set(editor.complete(FILE, text))
    assert set(editor.complete(FILE, text.replace("|", "each.|"))) == {"key", "value"}


def test_names_are_offered_as_the_open_files_declare_them(editor: Editor) -> None:
    """Across files that are not saved, with what their blocks say, by the kind of reference."""
    editor.write(
        "modules/team/main.kf.hcl",
        'output "count" {\n  description = "How many."\n  value = 1\n}\n'
        'variable "size" {\n  description = "How large."\n}\n',
    )
    editor.open(
        "names.kf.hcl",
        'variable "zone" {\n  type = string\n  description = "Where it runs."\n'
        '  default = "eu"\n}\n'
        'variable "key" {\n  sensitive = true\n  default = "s3cret"\n}\n'
        "locals {\n  rate = 1 + 1\n}\n"
        'module "team" {\n  source = "./modules/team"\n}\n'
        'data "kafka_topic" "old" {\n  name = "old"\n}\n'
        + PROVIDER
        + TOPIC
        + 'provider "kafka" {\n  alias = "eu"\n}\n',
    )
    found = editor.complete(FILE, "locals {\n  a = var.|\n}\n")
    assert set(found) == {"zone", "key"}
    page = read_doc(found["zone"])
    assert "Where it runs." in page and '`"eu"`' in page and "names.kf.hcl" in page
    assert "s3cret" not in read_doc(found["key"])
    for text, names in (
        ("local.|", {"rate", "a"}),
        ("module.|", {"team"}),
        ("module.team.|", {"count"}),
        ("kafka_topic.|", {"orders"}),
        ("data.|", {"kafka_topic"}),
        ("data.kafka_topic.|", {"old"}),
    ):
        assert set(editor.complete(FILE, f"locals {{\n  a = {text}\n}}\n")) == names, text
    fields = editor.complete(FILE, "locals {\n  a = kafka_topic.orders.to|\n}\n")
    assert {"topic_id", "name", "id"} <= set(fields)
    fields = editor.complete(FILE, "locals {\n  a = data.kafka_topic.old.|\n}\n")
    assert "partitions" in fields
    chosen = editor.complete(FILE, 'resource "kafka_topic" "b" {\n  provider = |\n}\n')
    assert set(chosen) == {"kafka", "kafka.eu"}
    chosen = editor.complete(FILE, 'resource "kafka_topic" "b" {\n  depends_on = [|]\n}\n')
    assert {"kafka_topic.orders", "data.kafka_topic.old", "module.team"} <= set(chosen)
    arguments = editor.complete(FILE, 'module "b" {\n  source = "./modules/team"\n  |\n}\n')
    assert "How large." in read_doc(arguments["size"])


def test_nothing_is_offered_in_comments(editor: Editor) -> None:
    """Neither of a line nor of several, nor in a text that no schema knows."""
    for text in ("# re|", "locals {\n  /* va|", "locals {\n  a = 1 # v|\n}\n", 'variable "x|" {\n'):
        assert editor.complete(FILE, text) == {}, text


def test_an_unfinished_block_does_not_swallow_the_next_one(editor: Editor) -> None:
    """Without its closing brace, what follows is still at the top, and completion there is that of
    the block that the cursor is in. So it is in a file that nobody has formatted."""
    text = 'resource "kafka_quota" "a" {\n  config = {\n\nprovider "kafka" {\n  |\n}\n' + TOPIC
    assert "bootstrap_servers" in editor.complete(FILE, text)
    text = 'resource "kafka_topic" "a" {\nname = "a"\nconfig = {\n|\n}\n}\n'
    assert "retention.ms" in editor.complete(FILE, text)
    assert "prevent_destroy" in editor.complete(
        FILE, 'resource "kafka_topic" "a" {\nlifecycle {\n|'
    )


def test_places_count_utf_16_and_line_ends_with_carriage_returns(editor: Editor) -> None:
    """Behind letters that count twice, and in a text with CRLF, the right word is replaced."""
    text = 'locals {\r\n  a = "😀ü${var.zo|ne}"\r\n}\r\nvariable "zone" {}\r\n'
    made = editor.choose(FILE, text, "zone")
    assert made == text.replace("|", "")


def test_an_editor_that_fills_in_places_gets_them(tmp_path: Path) -> None:
    """If it says that it can: a block comes with its labels and braces."""
    item = types.ClientCompletionItemOptions(snippet_support=True)
    document = types.TextDocumentClientCapabilities(
        completion=types.CompletionClientCapabilities(completion_item=item)
    )
    opened = Editor(tmp_path, capabilities=types.ClientCapabilities(text_document=document))
    assert opened.choose(FILE, "re|", "resource") == 'resource "$1" "$2" {\n  $0\n}'
    opened.close()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('re|source "kafka_topic" "a" {}\n', "An object that this configuration manages"),
        ('resource "kafka_to|pic" "a" {}\n', "A topic with its partitions"),
        (TOPIC.replace("  name", "  na|me"), "Name: up to 249 letters"),
        (TOPIC.replace("}\n", '  config = {\n    "retent|ion.ms" = 1\n  }\n}\n'), "unit `ms`"),
        (TOPIC.replace("}\n", "  lifecycle {\n    ad|opt = true\n  }\n}\n"), "take over"),
        ('locals {\n  a = up|per("a")\n}\n', "`upper(text)`"),
        ('locals {\n  a = retention("7|d")\n}\n', ""),
        (TOPIC + "locals {\n  a = kafka_topic.ord|ers.name\n}\n", "resource `kafka_topic.orders`"),
        (TOPIC + "locals {\n  a = kafka_topic.orders.topic_i|d\n}\n", "The id that the cluster"),
        ('variable "z" {\n  description = "Where."\n}\nlocals {\n  a = va|r.z\n}\n', "Where."),
        ('variable "z" {\n  type = list(str|ing)\n}\n', "A text."),
        ("locals {\n  a = var.no|thing\n}\n", "It is not declared"),
        ('resource "kafka_topic" "a" {\n  parti|tions = [\n', "You can raise it"),
    ],
)
def test_the_word_at_the_cursor_is_explained(editor: Editor, text: str, wanted: str) -> None:
    """Blocks, types, attributes, config keys, functions and names, also in a text that does not
    parse; nothing for a plain text."""
    page = editor.hover(FILE, text)
    assert wanted in page if wanted else page == ""


def test_a_resource_shows_its_last_changes(editor: Editor) -> None:
    """From the log beside the files; what is no resource, or has no record, shows nothing more."""
    written(editor.folder / AUDIT_FILE)
    text = TOPIC + "locals {\n  a = kafka_topic.ord|ers.name\n}\n"
    page = editor.hover(FILE, text)
    assert "Last changes:" in page and "ada@ci, run run-1: create" in page
    assert "partitions 12" in page and "(applied)" in page
    plain = editor.hover(FILE, TOPIC.replace("name", "na|me", 1))
    assert plain and "Last changes" not in plain
    other = text.replace("orders", "others").replace("ord|ers", "oth|ers")
    assert "Last changes" not in editor.hover(FILE, other)


def test_a_file_of_values_has_the_variables(editor: Editor) -> None:
    """With what they are for; what is given is not offered again. Files in JSON get nothing."""
    editor.open(FILE, 'variable "zone" {\n  description = "Where."\n}\nvariable "size" {}\n')
    found = editor.complete("prod.kfvars.hcl", "size = 1\nz|\n")
    assert set(found) == {"zone"} and "Where." in read_doc(found["zone"])
    assert "Where." in editor.hover("prod.kfvars.hcl", "zo|ne = 1\n")
    assert editor.complete("a.kf.json", '{"loc|": {}}') == {}
    assert editor.hover("a.kf.json", '{"loc|als": {}}') == ""
    assert editor.complete("fleet.hcl", "c|") == {}


def test_an_empty_folder_and_a_strange_file_get_no_answer(editor: Editor) -> None:
    """A file of another kind is none of ours."""
    assert editor.complete("notes.txt", "re|") == {}
    assert editor.hover("notes.txt", "resou|rce") == ""
