"""Names: where they are declared, where they are used, how they are renamed, and the outline."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from ...kit.editor import Editor

FILE = "main.kf.hcl"
PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["localhost:9092"]\n}\n'
MAIN = PROVIDER + (
    'variable "zone" {\n  default = "eu"\n}\n'
    'locals {\n  prefix = "${var.zone}."\n}\n'
    'resource "kafka_topic" "orders" {\n  name = "${local.prefix}orders"\n}\n'
    'module "team" {\n  source = "./modules/team"\n  zone   = var.zone\n}\n'
    'output "orders" {\n  value = kafka_topic.orders.name\n}\n'
    'output "all" {\n  value = [for t in [module.team.name] : t]\n}\n'
)
TEAM = (
    'variable "zone" {}\n'
    'resource "kafka_topic" "events" {\n  name = "${var.zone}.events"\n}\n'
    'output "name" {\n  value = kafka_topic.events.name\n}\n'
)
MODULE = "modules/team/main.kf.hcl"


@pytest.fixture
def folder(editor: Editor) -> Editor:
    """An editor with a configuration that calls a module, neither of them open."""
    editor.write(FILE, MAIN)
    editor.write(MODULE, TEAM)
    return editor


def cursor(text: str, word: str, number: int = 0) -> str:
    """The text with the cursor in an occurrence of a word."""
    at = -1
    for _ in range(number + 1):
        at = text.index(word, at + 1)
    return text[: at + 1] + "|" + text[at + 1 :]


# ── definitions and uses ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("word", "number", "wanted"),
    [
        ("var.zone", 0, [f"{FILE}:4:zone"]),
        ("zone   =", 0, [f"{MODULE}:1:zone"]),
        ("local.prefix", 0, [f"{FILE}:8:prefix"]),
        ("kafka_topic.orders", 0, [f"{FILE}:10:orders"]),
        ("team.name", 0, [f"{FILE}:13:team"]),
        ("name] :", 0, [f"{MODULE}:5:name"]),
        ("./modules", 0, [f"{MODULE}:1:"]),
        ("t]", 0, []),
    ],
)
def test_a_name_leads_to_its_declaration(
    folder: Editor, word: str, number: int, wanted: list[str]
) -> None:
    """In the same file, in a module, and from a path to the module; a name of a for leads
    nowhere."""
    assert folder.define(FILE, cursor(MAIN, word, number)) == wanted


def test_a_declaration_is_found_in_what_does_not_parse(folder: Editor) -> None:
    """The block that is typed and the file around it are broken, the names in it are not."""
    text = MAIN + 'resource "kafka_topic" "b" {\n  name = "${local.prefix}'
    assert folder.define(
        FILE, text.replace("${local.prefix}", "${local.pre|fix}", 2).replace("pre|fix", "prefix", 1)
    ) == [f"{FILE}:8:prefix"]
    assert folder.define(FILE, cursor(MAIN + "locals {\n  x = [var.zone\n", "var.zone", 2)) == [
        f"{FILE}:4:zone"
    ]


def test_uses_are_found_in_all_files(folder: Editor) -> None:
    """From a use or the declaration; in modules, values of variables and tests; each name in its
    own module only."""
    folder.write("kafkaform.kfvars.hcl", 'zone = "us"\n')
    folder.write(
        "a.kftest.hcl",
        'run "a" {\n  variables {\n    zone = "x"\n  }\n  assert {\n'
        '    condition = var.zone == "x"\n    error_message = "No."\n  }\n}\n',
    )
    found = folder.refer(FILE, cursor(MAIN, "zone"))
    assert sorted(found) == sorted(
        [
            f"{FILE}:4:zone",
            f"{FILE}:8:zone",
            f"{FILE}:15:zone",
            "kafkaform.kfvars.hcl:1:zone",
            "a.kftest.hcl:3:zone",
            "a.kftest.hcl:6:zone",
        ]
    )
    assert folder.refer(FILE, cursor(MAIN, "var.zone"), declaration=False) == [
        one for one in found if one != f"{FILE}:4:zone"
    ]
    inner = folder.refer(MODULE, cursor(TEAM, "zone"))
    assert sorted(inner) == sorted([f"{MODULE}:1:zone", f"{MODULE}:3:zone", f"{FILE}:15:zone"])


def test_a_folder_behind_a_link_keeps_its_name(editor: Editor, tmp_path: Path) -> None:
    """Faults, places and edits are those of the files that the editor has open, by its own names
    for them."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    text = 'variable "a" {\n  default = 1\n}\nlocals {\n  b = var.a + var.c\n}\n'
    name = f"link/{FILE}"
    editor.open(name, text)
    assert editor.wait_for_faults(name, bool)
    assert editor.define(name, cursor(text, "var.a")) == [f"{name}:1:a"]
    made = rename(editor, name, cursor(text, "var.a"), "z")
    assert made == {name: text.replace('"a"', '"z"').replace("var.a", "var.z")}


# ── renaming ────────────────────────────────────────────────────────────────────────────


def rename(editor: Editor, name: str, text: str, new: str) -> dict[str, str]:
    return editor.apply(editor.rename(name, text, new))


def test_a_variable_is_renamed_everywhere(folder: Editor) -> None:
    """Its block, its uses, files of values and tests; the variable of the module that has the same
    name stays, and is still given."""
    folder.write("prod.kfvars.hcl", 'zone = "us"\n')
    made = rename(folder, FILE, cursor(MAIN, "var.zone"), "region")
    assert made.keys() == {FILE, "prod.kfvars.hcl"}
    assert made[FILE] == MAIN.replace("var.zone", "var.region").replace('"zone"', '"region"')
    assert made["prod.kfvars.hcl"] == 'region = "us"\n'


def test_a_variable_of_a_module_is_renamed_with_its_callers(folder: Editor) -> None:
    """The argument in the call is the same name."""
    made = rename(folder, MODULE, cursor(TEAM, "zone"), "area")
    assert made == {
        MODULE: TEAM.replace("zone", "area"),
        FILE: MAIN.replace("zone   =", "area   ="),
    }


@pytest.mark.parametrize(
    ("word", "new", "file", "before", "after"),
    [
        ("prefix", "start", FILE, "prefix", "start"),
        ("all", "every", FILE, '"all"', '"every"'),
        ("name] :", "topic", FILE, "team.name", "team.topic"),
    ],
)
def test_local_values_and_outputs_are_renamed(
    folder: Editor, word: str, new: str, file: str, before: str, after: str
) -> None:
    """In the declaration and in each use; an output of a module in its callers."""
    made = rename(folder, FILE, cursor(MAIN, word), new)
    assert made[file] == MAIN.replace(before, after)
    if word.startswith("name"):
        assert made[MODULE] == TEAM.replace('"name"', '"topic"')


def validate(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)
    words = [sys.executable, "-m", "kafkaform", "validate"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_resource_keeps_its_object(folder: Editor, tmp_path: Path) -> None:
    """A `moved` block comes with the edit, a second one when it is renamed again; the result is a
    valid configuration. So it is in a module, and with a module itself."""
    made = rename(folder, FILE, cursor(MAIN, "kafka_topic.orders"), "sales")
    moved = "\nmoved {\n  from = kafka_topic.orders\n  to   = kafka_topic.sales\n}\n"
    assert moved in made[FILE]
    assert made[FILE].replace(moved, "") == MAIN.replace(
        '"orders" {\n  name', '"sales" {\n  name'
    ).replace("topic.orders", "topic.sales")
    validate(tmp_path, made)
    again = rename(folder, FILE, cursor(made[FILE], "kafka_topic.sales.name"), "deals")
    assert moved in again[FILE]
    assert "moved {\n  from = kafka_topic.sales\n  to   = kafka_topic.deals\n}" in again[FILE]
    validate(tmp_path, again)
    inner = rename(folder, MODULE, cursor(TEAM, "events"), "log")
    assert "  from = kafka_topic.events\n  to   = kafka_topic.log\n" in inner[MODULE]
    validate(tmp_path, inner)


def test_a_module_keeps_its_objects(folder: Editor, tmp_path: Path) -> None:
    """Likewise, for all that is in it."""
    made = rename(folder, FILE, cursor(MAIN, "team.name"), "group")
    assert "module.group.name" in made[FILE] and 'module "group"' in made[FILE]
    assert "  from = module.team\n  to   = module.group\n" in made[FILE]
    validate(tmp_path, made)


def test_the_moved_block_has_a_name_where_editors_show_one(tmp_path: Path) -> None:
    """An editor that can ask about parts of an edit gets the block as a part of its own."""
    edit = types.WorkspaceEditClientCapabilities(
        document_changes=True, change_annotation_support=types.ChangeAnnotationsSupportOptions()
    )
    workspace = types.WorkspaceClientCapabilities(workspace_edit=edit)
    opened = Editor(tmp_path, capabilities=types.ClientCapabilities(workspace=workspace))
    text = PROVIDER + 'resource "kafka_topic" "a" {\n  name = "a"\n}\n'
    found = opened.rename(FILE, cursor(text, '"a"'), "b")
    opened.close()
    assert found is not None and found.change_annotations is not None
    ((key, annotation),) = found.change_annotations.items()
    assert "moved block" in annotation.label
    (document,) = found.document_changes or []
    assert isinstance(document, types.TextDocumentEdit)
    named = [one for one in document.edits if isinstance(one, types.AnnotatedTextEdit)]
    assert [one.annotation_id for one in named] == [key] and "moved {" in named[0].new_text


@pytest.mark.parametrize(
    ("text", "word", "new", "why"),
    [
        (MAIN, "prefix", "a b", "is not a name"),
        (MAIN, "orders", "all", ""),
        (MAIN, '"orders" {\n  v', "all", "The name is taken: output all"),
        (MAIN, "bootstrap", "x", "not a name that the configuration declares"),
        (MAIN, "kafka", "x", "provider instance cannot be renamed"),
        (MAIN + "locals {\n  x = [\n}\n", "prefix", "start", "does not parse"),
        (MAIN.replace("var.zone\n", "var.gone\n"), "var.gone", "x", "is not declared"),
    ],
)
def test_what_cannot_be_renamed_is_refused_with_the_reason(
    folder: Editor, text: str, word: str, new: str, why: str
) -> None:
    """Nothing is edited then."""
    if not why:  # a resource and an output can have one name
        assert rename(folder, FILE, cursor(text, "kafka_topic.orders"), new)
        return
    at = cursor(text, word) if not word.startswith('"') else cursor(text, word[1:])
    with pytest.raises(JsonRpcException, match=why):
        folder.rename(FILE, at, new)


def test_a_use_that_no_edit_reaches_refuses_the_rename(folder: Editor) -> None:
    """A JSON file uses the name: the changed configuration would have a fault, which is the
    reason."""
    folder.write("more.kf.json", '{"output": {"z": {"value": "${var.zone}"}}}')
    with pytest.raises(JsonRpcException, match='There is no variable "zone"'):
        folder.rename(FILE, cursor(MAIN, "var.zone"), "region")


def test_a_rename_counts_in_utf_16_and_keeps_line_ends(editor: Editor) -> None:
    """Behind letters that count twice, in a file with CRLF."""
    text = (
        PROVIDER + 'resource "kafka_topic" "a" {\n  name = "😀${var.x}"\n}\n'
        'variable "x" {\n  default = "ü"\n}\n'
    ).replace("\n", "\r\n")
    assert rename(editor, FILE, cursor(text, "x}"), "size")[FILE] == text.replace(
        "var.x", "var.size"
    ).replace('"x"', '"size"')
    made = rename(editor, FILE, cursor(text, '"a"'), "b")[FILE]
    assert "\r\nmoved {\r\n  from" in made and "\n" not in made.replace("\r\n", "")


# ── the outline ─────────────────────────────────────────────────────────────────────────


def test_the_outline_has_every_block(editor: Editor) -> None:
    """With what is in it, also if the text does not parse."""
    text = (
        MAIN
        + 'resource "kafka_topic" "b" {\n  lifecycle {\n    adopt = \n\n'
        + ('variable "last" {}\n')
    )
    editor.open(FILE, text)
    found = editor.symbols(FILE)
    assert [(one.detail, one.name) for one in found] == [
        ("provider", "kafka"),
        ("variable", "zone"),
        ("locals", "locals"),
        ("resource", "kafka_topic.orders"),
        ("module", "team"),
        ("output", "orders"),
        ("output", "all"),
        ("resource", "kafka_topic.b"),
        ("variable", "last"),
    ]
    assert [one.name for one in found[2].children or []] == ["prefix"]
    assert [one.name for one in found[7].children or []] == ["lifecycle"]
    for one in found:
        assert (one.range.start.line, one.range.start.character) <= (
            one.selection_range.start.line,
            one.selection_range.start.character,
        )


def test_a_json_file_has_an_outline(editor: Editor) -> None:
    """Its blocks are found, and so are its names from other files."""
    editor.open("a.kf.json", '{\n  "variable": {"zone": {"default": "eu"}}\n}\n')
    assert [one.name for one in editor.symbols("a.kf.json")] == ["zone"]
    assert editor.define(FILE, "locals {\n  a = var.zo|ne\n}\n")[0].startswith("a.kf.json:2:")
