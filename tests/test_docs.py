"""The documents are true: what they show is generated, parsed or run here."""

from __future__ import annotations

import hashlib
import json
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import typer
from msgspec import Struct
from msgspec.structs import replace
from typer.core import TyperGroup

from kafkaform.apply.freshness import RULE, compute_approval
from kafkaform.audit.records import KINDS
from kafkaform.cli.app import run_command_line
from kafkaform.cli.command_tree import get_commands
from kafkaform.cli.options.translation import normalise_flags
from kafkaform.core import canonical, change, diagnostics, finding, resource
from kafkaform.core.errors import EXIT_CODES
from kafkaform.plan import codec, model
from kafkaform.plan.model import seal_plan
from kafkaform.sandbox.jars import read_pinned_jars
from kafkaform.state.codec import _LATER_ROW_RULES, MEMBERS
from kafkaform.state.codec import decode as decode_state
from kafkaform.state.codec import encode as encode_state
from kafkaform.workflow.configuration.evaluation import Inputs, read_configuration
from kafkaform.workflow.configuration.repository_file import read_repository

from .test_kip_map import PROOF, functions

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
GOLDEN_LOG = ROOT / "tests/cases/audit/golden.jsonl"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
RUN = re.compile(r'^run "', re.MULTILINE)
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path, language: str) -> list[str]:
    """The fenced blocks of one language in a document."""
    text = path.read_text(encoding="utf-8")
    return [body for kind, body in FENCE.findall(text) if kind == language]


def configurations(path: Path) -> list[str]:
    """The HCL blocks of a document, without its test files."""
    texts = [text for text in blocks(path, "hcl") if not RUN.search(text)]
    return [text for text in texts if not REPOSITORY.search(text)]


REPOSITORY = re.compile(r"^repository \{", re.MULTILINE)
"""What a file kafkaform.hcl contains."""


def prose(path: Path) -> str:
    """A document without its fenced blocks."""
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def cells(path: Path, heading: str) -> list[list[str]]:
    """The body rows of the first table whose first header cell is this."""
    lines = iter(prose(path).splitlines())
    for line in lines:
        if line.startswith(f"| {heading} |"):
            next(lines)
            break
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return rows


def in_code(text: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", text)


# ── reference and configuration ─────────────────────────────────────────────────────────


def test_the_reference_is_what_the_schemas_say() -> None:
    """docs/reference holds exactly the pages that docs/reference.py makes today."""
    pages = runpy.run_path(str(DOCS / "reference.py"))["pages"]()
    folder = DOCS / "reference"
    assert pages.keys() == {path.name for path in folder.iterdir()}
    for name, text in pages.items():
        assert (folder / name).read_text(encoding="utf-8") == text, "run docs/reference.py"


def test_the_command_line_is_what_the_help_says() -> None:
    """docs/command-line.md holds exactly what docs/command_line.py makes today."""
    page = runpy.run_path(str(DOCS / "command_line.py"))["page"]()
    assert (DOCS / "command-line.md").read_text(encoding="utf-8") == page, (
        "run docs/command_line.py"
    )


@pytest.mark.parametrize(
    "path", [path for path in DOCUMENTS if configurations(path)], ids=lambda p: name_of(p)
)
def test_every_configuration_shown_is_valid(path: Path, tmp_path: Path) -> None:
    """Each HCL block of a document passes `kafkaform validate`."""
    for number, text in enumerate(configurations(path)):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "main.kf.hcl").write_text(text, encoding="utf-8")
        built = read_configuration(folder, Inputs()).evaluate(offline=True)
        found = built.desired
        assert not diagnostics.has_errors(found.diagnostics), found.diagnostics
        assert found.declared or built.policies


def test_every_repository_file_shown_can_be_read(tmp_path: Path) -> None:
    """Such files on the pages have no fault."""
    shown = [text for path in DOCUMENTS for text in blocks(path, "hcl") if REPOSITORY.search(text)]
    assert len(shown) > 1
    for text in shown:
        assert read_repository(tmp_path / "kafkaform.hcl", content=text.encode()).groups


@pytest.mark.parametrize("number", [1, 2])
def test_the_test_files_shown_pass(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test files of docs/testing.md pass with the configuration that it shows first."""
    main, *suites = blocks(DOCS / "testing.md", "hcl")
    (tmp_path / "main.kf.hcl").write_text(main, encoding="utf-8")
    (tmp_path / "main.kftest.hcl").write_text(suites[number - 1], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert len(suites) == 2
    assert run_command_line(["test"]) == 0


# ── commands ────────────────────────────────────────────────────────────────────────────


def commands(group: TyperGroup, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command that can be typed, as its words."""
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


def typed(path: Path) -> Iterator[list[str]]:
    """The words after `kafkaform` of each command line in the document's shell blocks."""
    for block in blocks(path, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words and words[0] in ("kafkaform", ".venv/bin/kafkaform"):
                # What a shell does with the output is none of kafkaform's business.
                yield list(takewhile(lambda word: word not in (">", "|"), words[1:]))


def parse(words: list[str]) -> None:
    """Parse a command line without running it; whatever is wrong with it raises."""
    command: Any = get_commands()
    context = command.make_context("kafkaform", normalise_flags(words, command))
    while isinstance(command, TyperGroup):
        rest = [*getattr(context, "_protected_args", ()), *context.args]
        if not rest and command.invoke_without_command:
            return
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_every_command_line_shown_can_be_typed(path: Path) -> None:
    """Each `kafkaform …` line of a shell block parses: command, flags, arguments."""
    for words in typed(path):
        parse(words)


def test_the_command_check_sees_what_is_wrong() -> None:
    """A flag or command that is not there fails the check above."""
    for wrong in (
        ["plan", "--nonsense"],
        ["nonsense"],
        ["state", "nonsense"],
        ["state", "mv", "a"],
    ):
        with pytest.raises((typer.TyperException, typer.Exit)):
            parse(wrong)


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_every_command_named_in_prose_exists(path: Path) -> None:
    """`kafkaform WORDS --flag` in running text names a command and flags of the program."""
    known = set(commands(get_commands())) | {words[:1] for words in commands(get_commands())}
    flags = {flag for line in flags_of(get_commands()) for flag in line}
    for code in in_code(prose(path)):
        words = code.split()
        if words[0] != "kafkaform" or len(words) < 2 or words[1].isupper():
            continue
        named = tuple(word for word in words[1:3] if re.fullmatch(r"[a-z]+", word))
        assert named in known or named[:1] in known, code
        assert {w.partition("=")[0] for w in words if w.startswith("--")} <= flags, code


def flags_of(group: TyperGroup) -> Iterator[list[str]]:
    for command in group.commands.values():
        yield from ([*option.opts, *option.secondary_opts] for option in command.params)
        if isinstance(command, TyperGroup):
            yield from flags_of(command)
    yield ["--help"]


def test_the_commands_page_lists_every_command() -> None:
    """The table of docs/commands.md has all of them and no other."""
    listed = set()
    for row in cells(DOCS / "commands.md", "command"):
        first, *others = in_code(row[0])
        words = [word for word in first.split() if word.islower()]
        listed.add(tuple(words))
        listed |= {(*words[:-1], other) for other in others}
    assert listed == set(commands(get_commands()))


def test_the_exit_codes_are_those_of_the_program() -> None:
    """The table of exit codes names each code that a command can end with."""
    rows = cells(DOCS / "architecture.md", "code")
    named = {int(code) for row in rows for code in row[0].split(",")}
    assert named == {0, 2, 130, 143, *EXIT_CODES.values()}


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_make_targets_exist(path: Path) -> None:
    """Every `make TARGET` of a document is a target of the Makefile."""
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = "\n".join([*blocks(path, "sh"), *in_code(prose(path))])
    assert set(re.findall(r"(?:^|&& |\d )make ([\w-]+)", text, re.MULTILINE)) <= targets


# ── links and tables ────────────────────────────────────────────────────────────────────


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings, as hosting sites make them."""
    titles = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_every_link_leads_somewhere(path: Path) -> None:
    """Links between documents name a file that is there, and a heading in it."""
    for link in re.findall(r"\]\(([^)]+)\)", prose(path)):
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_report_has_an_answer_that_a_test_holds() -> None:
    """docs/reports.md has a link for each of its rows, and names tests that are there."""
    text = (DOCS / "reports.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| \[[^\]]+\]\[(\w+)\] \|(.*)\|$", text, re.MULTILINE)
    assert [(int(number), link) for number, link, _ in rows] == [(n, f"r{n}") for n in range(1, 35)]
    links = dict(re.findall(r"^\[(r\d+)\]: (https://github\.com/\S+/\d+)$", text, re.MULTILINE))
    assert links.keys() == {link for _, link, _ in rows}
    assert len(set(links.values())) == len(rows)
    for number, _, cells_of_row in rows:
        proofs = PROOF.findall(cells_of_row.rpartition(" | ")[2])
        assert proofs, number
        for file, name in proofs:
            assert name in functions(file), f"{file} has no {name}"


def test_the_number_of_pinned_jars_is_told_right() -> None:
    """The decision about the sandbox counts the jars of its list."""
    assert f"from {len(read_pinned_jars())} jars" in prose(DOCS / "decisions/023-pinned-jars.md")


# ── file formats ────────────────────────────────────────────────────────────────────────


NOUNS = (
    model.Plan,
    model.PlanInstance,
    model.Options,
    model.PolicyFolders,
    model.Unmanaged,
    model.OutputChange,
    resource.Facts,
    resource.Identity,
    resource.Output,
    resource.Pending,
    change.Change,
    change.PathChange,
    change.Ownership,
    change.Step,
    change.Request,
    change.SideEffect,
    change.Impact,
    finding.Finding,
    finding.AccessRow,
    finding.Waiver,
    diagnostics.Diagnostic,
    diagnostics.Range,
)


def run_shown(document: str, file: Path) -> subprocess.CompletedProcess[str]:
    """Run the Python program of a document on a file, in a bare interpreter."""
    (program,) = blocks(DOCS / document, "python")
    command = [sys.executable, "-I", "-S", "-c", program, str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.__name__)
def test_the_plan_format_names_every_member(noun: type[Struct]) -> None:
    """docs/formats/plan.md names each field that a plan file can hold."""
    named = set(in_code(prose(DOCS / "formats/plan.md")))
    assert set(noun.__struct_fields__) <= named


@pytest.fixture
def shown_plan(tmp_path: Path) -> Path:
    """The example of docs/formats/plan.md as the file that it was."""
    (text,) = blocks(DOCS / "formats/plan.md", "json")
    path = tmp_path / "example.kfplan"
    path.write_text(canonical.dumps(canonical.loads(text)) + "\n", encoding="ascii")
    return path


def test_the_plan_shown_is_a_plan(shown_plan: Path) -> None:
    """The example decodes, its checksum holds, and its approval follows from its changes."""
    plan = codec.decode(shown_plan.read_bytes(), "the example")
    assert compute_approval(plan) == plan.approval and plan.rule == RULE
    assert codec.encode(plan) == shown_plan.read_bytes()


def test_policies_can_be_checked_without_kafkaform(shown_plan: Path, tmp_path: Path) -> None:
    """The same program knows that the approval covers policies from outside."""
    plan = codec.decode(shown_plan.read_bytes(), "the example")
    judged = seal_plan(replace(plan, policies=model.PolicyFolders(("rules",), "0" * 64)))
    file = tmp_path / "judged.kfplan"
    file.write_bytes(codec.encode(judged))
    told = run_shown("formats/plan.md", file)
    assert (told.stdout, told.stderr) == (f"{judged.token}\n", "")


def test_the_plan_can_be_checked_without_kafkaform(shown_plan: Path) -> None:
    """The program in docs/formats/plan.md prints the token, and refuses an altered plan."""
    told = run_shown("formats/plan.md", shown_plan)
    plan = codec.decode(shown_plan.read_bytes(), "the example")
    assert (told.stdout, told.stderr) == (f"{plan.token}\n", "")
    altered = shown_plan.read_text().replace("2592000000", "2592000001")
    shown_plan.write_text(altered)
    assert run_shown("formats/plan.md", shown_plan).stderr == "the checksum differs\n"
    file = json.loads(altered)
    file["checksum"] = canonical.digest({"format": file["format"], "plan": file["plan"]})
    shown_plan.write_text(json.dumps(file))
    assert run_shown("formats/plan.md", shown_plan).stderr == "the approval differs\n"


def test_the_state_shown_is_a_state() -> None:
    """The example in docs/formats/state.md is byte for byte a state, and so is its checksum."""
    (text,) = blocks(DOCS / "formats/state.md", "json")
    state = decode_state(text.encode(), "the example")
    assert encode_state(state) == text.encode()
    rest = "".join(x for x in text.splitlines(True) if not x.startswith('"checksum"'))
    assert hashlib.sha256(rest.encode()).hexdigest() in text


def test_the_state_format_names_every_member() -> None:
    """docs/formats/state.md has each member of a state and of a row, and no other."""
    (text,) = blocks(DOCS / "formats/state.md", "json")
    row = json.loads(text)["objects"][0]
    rows = re.findall(r"^\| `(\w+)` \|", prose(DOCS / "formats/state.md"), re.MULTILINE)
    assert sorted(rows) == sorted([*MEMBERS, *row, *_LATER_ROW_RULES])


def test_the_audit_format_names_every_member() -> None:
    """docs/formats/audit.md names each kind, and each member that the golden log holds."""
    named = set(in_code(prose(DOCS / "formats/audit.md")))
    assert set(KINDS) <= named
    for line in GOLDEN_LOG.read_text().splitlines():
        record = json.loads(line)
        assert record.keys() | record["body"].keys() <= named, record["kind"]


def test_the_records_shown_are_records() -> None:
    """The examples in docs/formats/audit.md are an intent and its outcome, hashes included."""
    records = [json.loads(text) for text in blocks(DOCS / "formats/audit.md", "json")]
    assert [record["kind"] for record in records] == ["intent", "outcome"]
    for record in records:
        claimed = record.pop("hash")
        assert canonical.digest(record) == claimed


def test_the_log_can_be_checked_without_kafkaform(tmp_path: Path) -> None:
    """The program in docs/formats/audit.md accepts a log, and finds any change to it."""
    lines = GOLDEN_LOG.read_bytes().splitlines(keepends=True)
    last = json.loads(lines[-1])
    told = run_shown("formats/audit.md", GOLDEN_LOG)
    assert (told.stdout, told.stderr) == (f"{last['seq']}:{last['hash']}\n", "")
    wrong = {
        "altered": [lines[0], lines[1].replace(b'"digest":"f', b'"digest":"0'), *lines[2:]],
        "dropped": [lines[0], *lines[2:]],
        "swapped": [lines[0], lines[2], lines[1], *lines[3:]],
        "repeated": [lines[0], lines[1], lines[1], *lines[2:]],
    }
    for name, log in wrong.items():
        assert log != lines
        path = tmp_path / name
        path.write_bytes(b"".join(log))
        told = run_shown("formats/audit.md", path)
        assert told.returncode == 1, name
        assert told.stderr.startswith("record "), name


def test_every_decision_is_listed() -> None:
    """The index names every record by its title, and each says what was decided, why, what follows
    and what was not chosen."""
    folder = DOCS / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    for path in sorted(folder.glob("[0-9]*.md")):
        title, *sections = re.findall(r"^##? (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        number, _, name = title.partition(": ")
        assert f"| {number} | [{name}]({path.name}) |" in index
        assert sections == ["Decision", "Why", "What follows", "Not chosen"], path.name


def test_the_strangers_walk_leads_somewhere() -> None:
    """Twenty questions of a newcomer, each answered by paths that exist."""
    walk = prose(DOCS / "development.md").split("## A stranger's walk")[1].split("\n## ")[0]
    rows = [line for line in walk.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 20
    for row in rows:
        paths = [path for path in in_code(row.split("|")[2]) if "/" in path]
        assert paths and all((ROOT / path).exists() for path in paths), row


def test_every_environment_variable_has_a_row() -> None:
    """A variable that the code reads is on the page, so that nobody has to search the source."""
    page = (DOCS / "environment-variables.md").read_text(encoding="utf-8")
    sources = [
        path for folder in ("kafkaform", "providers") for path in ROOT.glob(f"{folder}/**/*.py")
    ]
    names = {
        name
        for path in sources
        for name in re.findall(r'"(KAFKAFORM_[A-Z_]*[A-Z])"', path.read_text(encoding="utf-8"))
    }
    shown = {name.replace("KAFKAFORM_SANDBOX_", "") for name in names}
    assert len(names) > 15
    assert [name for name in shown if f"`{name}`" not in page] == []


def test_every_exit_code_has_a_row() -> None:
    """The page and the table of the code are the same."""
    rows = re.findall(
        r"^\| ([\d, ]+) \|", (DOCS / "exit-codes.md").read_text("utf-8"), re.MULTILINE
    )
    codes = {int(code) for row in rows for code in row.split(", ")}
    assert codes == {0, 2, 130, 141, 143, *EXIT_CODES.values()}
