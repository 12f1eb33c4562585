"""Faults as somebody types, and formatting: what `validate` and `fmt` say of a text that is not
saved."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from lsprotocol import types

from ...kit.editor import Editor, find_offset

PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["localhost:9092"]\n}\n'
GOOD = PROVIDER + 'resource "kafka_topic" "a" {\n  name = "a"\n}\n'


def _accept_all(found: object) -> bool:
    return True


def messages(found: list[types.Diagnostic]) -> list[str]:
    return [one.message.partition("\n")[0] for one in found]


def test_a_fault_comes_and_goes_as_somebody_types(editor: Editor) -> None:
    """The text counts and not the file, which does not even exist; a file without faults says
    so."""
    editor.open("main.kf.hcl", GOOD)
    assert editor.wait_for_faults("main.kf.hcl", lambda found: True) == []
    editor.type("main.kf.hcl", GOOD.replace("  name", "  nmae"))
    found = editor.wait_for_faults("main.kf.hcl", bool)
    assert 'no argument "nmae"' in "".join(messages(found)) or "nmae" in messages(found)[0]
    assert {one.severity for one in found} == {types.DiagnosticSeverity.Error}
    assert {one.source for one in found} == {"kafkaform"}
    editor.type("main.kf.hcl", GOOD)
    editor.wait_for_faults("main.kf.hcl", lambda found: not found)


def test_a_missing_value_is_shown_at_the_declaration(editor: Editor) -> None:
    """Of each variable without a value and each data source, and in no other open file."""
    texts = {
        "main.kf.hcl": GOOD,
        "variables.kf.hcl": '# Values come from a file.\nvariable "x" {}\nvariable "y" {}\n',
        "data.kf.hcl": '\ndata "kafka_topics" "a" {}\n\ndata "kafka_topics" "b" {}\n',
    }
    for name, text in texts.items():
        editor.write(name, text)
        editor.open(name, text)
    places = {
        name: [
            (one.range.start.line, one.message.partition("\n")[0])
            for one in editor.wait_for_faults(name, bool if name != "main.kf.hcl" else _accept_all)
        ]
        for name in ("variables.kf.hcl", "data.kf.hcl", "main.kf.hcl")
    }
    assert places == {
        "main.kf.hcl": [],
        "variables.kf.hcl": [(1, "1 variable has no value: x"), (2, "1 variable has no value: y")],
        "data.kf.hcl": [
            (1, "1 data source has not been read: data.kafka_topics.a"),
            (3, "1 data source has not been read: data.kafka_topics.b"),
        ],
    }


def test_the_faults_are_those_of_validate(tmp_path: Path, editor: Editor) -> None:
    """Each with its place and advice, warnings too, however many there are."""
    text = GOOD + (
        'variable "x" {}\n'
        'resource "kafka_topic" "b" {\n  name = var.y\n  partitions = "many"\n'
        '  config = { "retention.ms" = nothing() }\n}\n'
        'output "o" {\n  value = kafka_topic.c.name\n}\n'
    )
    editor.write("main.kf.hcl", text)
    editor.open("main.kf.hcl", text)
    found = editor.wait_for_faults("main.kf.hcl", bool)
    words = [sys.executable, "-m", "kafkaform", "validate", "-json"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    said = json.loads(done.stdout)["diagnostics"]
    assert len(said) >= 4
    assert sorted(messages(found)) == sorted(one["summary"] for one in said)
    places = {
        one["summary"]: (one["range"]["start"]["line"] - 1, one["range"]["start"]["column"] - 1)
        for one in said
        if "range" in one
    }
    for one in found:
        summary = one.message.partition("\n")[0]
        start = one.range.start
        assert places.get(summary, (0, 0)) == (start.line, start.character)


def test_places_are_counted_in_units_of_utf_16(editor: Editor) -> None:
    """As editors count: a letter beyond the first 65,536 counts twice."""
    text = PROVIDER + 'locals {\n  a = "😀😀 ü" == nothing ? 1 : 2\n}\n'
    editor.open("main.kf.hcl", text)
    (one,) = editor.wait_for_faults("main.kf.hcl", bool)
    start, end = (find_offset(text, place) for place in (one.range.start, one.range.end))
    assert text[start:end] == "nothing"


def test_other_files_of_the_folder_count_as_typed(editor: Editor) -> None:
    """A variable that is declared in an open file and not in the saved one is known in the others;
    so is a fault in a file that is not open."""
    editor.write("variables.kf.hcl", "")
    editor.write("broken.kf.hcl", "locals {\n  a = [\n}\n")
    editor.open("main.kf.hcl", GOOD.replace('"a"\n}', "var.name\n}"))
    found = editor.wait_for_faults("main.kf.hcl", bool)
    assert messages(found) == ['There is no variable "name"']
    assert editor.wait_for_faults("broken.kf.hcl", bool)
    editor.open("variables.kf.hcl", 'variable "name" {}\n')
    editor.wait_for_faults(
        "main.kf.hcl", lambda found: 'There is no variable "name"' not in messages(found)
    )


def test_a_module_is_checked_as_its_caller_calls_it(editor: Editor) -> None:
    """Its own folder has no provider block, and needs none; a fault in it is shown at its file,
    also if only the caller is open."""
    editor.write("main.kf.hcl", PROVIDER + 'module "team" {\n  source = "./modules/team"\n}\n')
    module = 'resource "kafka_topic" "a" {\n  name = "a"\n}\n'
    editor.open("modules/team/main.kf.hcl", module)
    assert editor.wait_for_faults("modules/team/main.kf.hcl", lambda found: True) == []
    editor.type("modules/team/main.kf.hcl", module + 'variable "needed" {}\n')
    (fault,) = editor.wait_for_faults("main.kf.hcl", bool)
    assert fault.message.startswith('module.team needs "needed"')


def test_tests_policies_values_and_json_have_their_faults(editor: Editor) -> None:
    """Each kind of file is checked as the command that reads it does."""
    editor.write("main.kf.hcl", GOOD + 'variable "size" {\n  type = number\n}\n')
    for name, text, fault in (
        ("a.kftest.hcl", 'run "a" {\n  comand = "plan"\n}\n', "comand"),
        ("a.kfpolicy.hcl", 'policy "a" {\n  condition = true\n}\n', 'needs "message"'),
        ("a.kfvars.hcl", "size = [1]\n", "size"),
        ("a.kf.json", '{"resource": {"kafka_topic": {"b": {"nam": "b"}}}}', "nam"),
        ("fleet.hcl", "cluster {\n", ""),
    ):
        editor.open(name, text)
        found = editor.wait_for_faults(name, bool)
        assert fault in found[0].message, name


def test_a_closed_file_is_the_saved_one_again(editor: Editor) -> None:
    """What was typed and thrown away is forgotten, with its faults."""
    editor.write("main.kf.hcl", GOOD)
    editor.open("main.kf.hcl", GOOD + "nonsense\n")
    editor.open("other.kf.hcl", "")
    editor.wait_for_faults("main.kf.hcl", bool)
    identifier = types.TextDocumentIdentifier(editor.uri("main.kf.hcl"))
    editor.client.text_document_did_close(types.DidCloseTextDocumentParams(identifier))
    del editor.texts["main.kf.hcl"]
    editor.wait_for_faults("main.kf.hcl", lambda found: not found)


def test_nothing_is_run_and_no_secret_is_read(tmp_path: Path) -> None:
    """A configuration that somebody else wrote can be opened: a command for a secret is not
    started, and a fault does not have the text of a secret."""
    opened = Editor(tmp_path, {"TOKEN_OF_CI": "s3cret-s3cret"})
    text = PROVIDER.replace(
        "}\n",
        '  sasl_username = "ci"\n'
        f'  sasl_password = secret_command(["touch", "{tmp_path}/ran"])\n}}\n',
    )
    text += 'locals {\n  a = upper(secret_env("TOKEN_OF_CI"))\n}\n'
    opened.open("main.kf.hcl", text)
    found = opened.wait_for_faults("main.kf.hcl", bool)
    opened.close()
    assert not (tmp_path / "ran").exists()
    assert not any("s3cret-s3cret" in one.message for one in found)


@pytest.mark.slow("parses and checks megabytes")
def test_a_hostile_file_does_not_stop_the_server(editor: Editor) -> None:
    """A text that doubles itself, and one of megabytes, are faults; meanwhile and afterwards other
    files are formatted and checked."""
    lines = "".join(f'  a{n + 1} = "${{local.a{n}}}${{local.a{n}}}"\n' for n in range(40))
    editor.open("main.kf.hcl", f'locals {{\n  a0 = "aaaaaaaaaa"\n{lines}}}\n')
    editor.open("big.kf.hcl", "locals {\n" + "  x = [[[[[[1]]]]]]\n" * 150_000)
    editor.open("a.kftest.hcl", 'run "a" {\ncommand="plan"\n}\n')
    assert editor.format("a.kftest.hcl") == 'run "a" {\n  command = "plan"\n}\n'
    assert editor.complete("small.kf.hcl", "va|") == {}
    assert editor.wait_for_faults("big.kf.hcl", bool)
    assert editor.wait_for_faults("main.kf.hcl", bool)
    assert "variable" in editor.complete("small.kf.hcl", "var|")
    assert editor.format("a.kftest.hcl") == 'run "a" {\n  command = "plan"\n}\n'


def test_formatting_keeps_line_ends_and_leaves_broken_text_alone(editor: Editor) -> None:
    """Like `fmt`: only blanks change, CRLF stays, and so does a text that does not parse."""
    editor.open("main.kf.hcl", 'locals {\r\na="😀"\r\n  bcd   = 2\r\n}\r\n')
    assert editor.format("main.kf.hcl") == 'locals {\r\n  a   = "😀"\r\n  bcd = 2\r\n}\r\n'
    editor.type("main.kf.hcl", "locals {\na=[\n}\n")
    assert editor.format("main.kf.hcl") == "locals {\na=[\n}\n"


def test_the_server_ends_with_its_editor(tmp_path: Path) -> None:
    """An editor that is gone closes the stream: no process stays behind, and nothing is said."""
    words = [sys.executable, "-m", "kafkaform", "lsp"]
    done = subprocess.run(
        words, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_without_its_library_the_command_says_what_to_install(tmp_path: Path) -> None:
    """One line, and no traceback."""
    program = (
        "import sys; sys.modules['pygls'] = None; sys.modules['lsprotocol'] = None\n"
        "from kafkaform.cli.app import main; main(['lsp'])"
    )
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "[lsp]" in done.stderr and "Traceback" not in done.stderr


def test_what_a_plan_would_find_in_a_block_is_shown(editor: Editor) -> None:
    """A block is an error and a caution a warning, each at its key, with the words of the plan."""
    config = (
        '  replication_factor = 2\n  config = {\n    "min.insync.replicas" = 3\n'
        '    "cleanup.policy" = "none"\n  }\n}\n'
    )
    editor.open("main.kf.hcl", GOOD.removesuffix("}\n") + config)
    faults = editor.wait_for_faults("main.kf.hcl", lambda faults: len(faults) > 1)
    assert {(fault.range.start.line, fault.severity) for fault in faults} == {
        (7, types.DiagnosticSeverity.Warning),
        (8, types.DiagnosticSeverity.Error),
    }
    assert any("[topic-min-insync-above-replicas]" in text for text in messages(faults))


def test_a_fault_of_a_schema_is_shown_in_its_file(editor: Editor) -> None:
    """Also if nobody has opened that file; it goes once the file is mended and a block changes."""
    block = (
        'provider "schema_registry" {\n  url = "http://localhost:8081"\n}\n'
        'resource "schema_registry_schema" "a" {\n  subject = "a-value"\n  format = "avro"\n'
        '  schema = file("order.avsc")\n}\n'
    )
    editor.write("order.avsc", '{\n  "type": "strng"\n}\n')
    editor.open("main.kf.hcl", block)
    (fault,) = editor.wait_for_faults("order.avsc", bool)
    assert (fault.range.start.line, fault.range.start.character) == (1, 10)
    assert "[schema-invalid]" in fault.message
    editor.write("order.avsc", '{\n  "type": "string"\n}\n')
    editor.type("main.kf.hcl", f"{block}\n")
    editor.wait_for_faults("order.avsc", lambda faults: not faults)
