"""The extension for Visual Studio Code: what its manifest names exists, its grammar works on every
example, and it can be packaged."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkaform.editor.project import CONFIGURATIONS, FLEET, FORMATTED, REPOSITORY
from kafkaform.version import VERSION

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "editors/vscode"
MANIFEST: dict[str, Any] = json.loads((FOLDER / "package.json").read_text())
GRAMMAR: dict[str, Any] = json.loads((FOLDER / "syntaxes/kafkaform.tmLanguage.json").read_text())
FILES = (".kf.hcl", ".kftest.hcl", ".kfpolicy.hcl")
EXAMPLES = sorted(p for p in (ROOT / "examples").rglob("*.hcl") if p.name.endswith(FILES))


def test_the_manifest_names_what_exists() -> None:
    """Each path in it is a file, the version is ours, and the language has every ending that the
    server knows; Terraform's files stay with Terraform's extension."""
    contributed = MANIFEST["contributes"]
    (language,), (grammar,) = contributed["languages"], contributed["grammars"]
    for path in (MANIFEST["main"], language["configuration"], grammar["path"]):
        assert (FOLDER / path).is_file(), path
    assert MANIFEST["version"] == VERSION
    assert grammar["language"] == language["id"]
    assert grammar["scopeName"] == GRAMMAR["scopeName"]
    ours = {one for one in (*CONFIGURATIONS, *FORMATTED) if ".kf" in one and one.endswith("hcl")}
    assert set(language["extensions"]) == ours
    assert language["filenames"] == [FLEET, REPOSITORY]
    json.loads((FOLDER / language["configuration"]).read_text())


def test_the_client_starts_the_command() -> None:
    """Its settings are those of the manifest, it registers each command of it, and no workspace can
    choose the program that is started, or let it connect."""
    text = (FOLDER / "client.js").read_text()
    settings = MANIFEST["contributes"]["configuration"]["properties"]
    assert settings["kafkaform.command"]["default"] == ["kafkaform"]
    assert settings["kafkaform.command"]["scope"] == "machine"
    assert settings["kafkaform.live"]["default"] is False
    assert settings["kafkaform.live"]["scope"] == "machine"
    assert '"lsp", ...flags]' in text and '.get("command")' in text
    for command in MANIFEST["contributes"]["commands"]:
        assert f'registerCommand("{command["command"]}"' in text
    required = set(re.findall(r'require\("([^"/]+)', text))
    assert required == {"vscode", *MANIFEST["dependencies"]}
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is missing: the syntax of client.js was not checked")
    subprocess.run([node, "--check", FOLDER / "client.js"], check=True)


STUBS = """
const Module = require("module"), load = Module._load, seen = [];
const stubs = {
  vscode: {
    commands: { registerCommand: (name, run) => { seen.push(name); return run; } },
    window: { showErrorMessage: (text) => seen.push(text) },
    workspace: {
      getConfiguration: () => ({
        get: (name) => name === "live" ? !!process.env.LIVE : ["uv", "run", "kafkaform"],
      }),
      createFileSystemWatcher: () => ({}),
    },
  },
  "vscode-languageclient/node": {
    LanguageClient: class {
      constructor(id, name, server, client) { seen.push(server, client.documentSelector); }
      async start() { if (process.env.FAIL) throw new Error("no such file"); seen.push("start"); }
      async stop() { seen.push("stop"); }
    },
  },
};
Module._load = (name, ...rest) => stubs[name] ?? load(name, ...rest);
const { activate, deactivate } = require(process.argv[1]);
(async () => {
  await activate({ subscriptions: [] });
  await deactivate();
  console.log(JSON.stringify(seen));
})();
"""


@pytest.mark.parametrize(("fails", "live"), [("", ""), ("1", ""), ("", "1")])
def test_the_client_runs(fails: str, live: str) -> None:
    """It starts the command of the setting with `lsp`, for every file of the language and for those
    in JSON, and stops it; if the command is missing, it says what to install. The server asks live
    systems only with the setting for it."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is missing, which runs client.js")
    words = [node, "-e", STUBS, str(FOLDER / "client.js")]
    env = {**os.environ, "FAIL": fails, "LIVE": live}
    done = subprocess.run(words, capture_output=True, text=True, env=env, check=True)
    command, server, selector, *rest = json.loads(done.stdout)
    assert command == MANIFEST["contributes"]["commands"][0]["command"]
    flags = ["--live"] if live else []
    assert server == {"command": "uv", "args": ["run", "kafkaform", "lsp", *flags]}
    assert {"scheme": "file", "language": "kafkaform"} in selector
    assert {"scheme": "file", "pattern": "**/*.kf.json"} in selector
    if fails:
        (message,) = rest
        assert "Run it in a terminal" in message and "no such file" in message
    else:
        assert rest == ["start", "stop"]


def list_rules(rule: Any) -> Iterator[dict[str, Any]]:
    """Every rule of a grammar."""
    if isinstance(rule, dict):
        yield rule
        for inner in rule.values():
            yield from list_rules(inner)
    elif isinstance(rule, list):
        for inner in rule:
            yield from list_rules(inner)


def test_every_rule_of_the_grammar_can_be_used() -> None:
    """Its patterns compile with Oniguruma, which editors use, and what it includes exists."""
    onigurumacffi = pytest.importorskip(
        "onigurumacffi", reason="onigurumacffi is missing: pip install -e '.[test]'"
    )
    rules = list(list_rules(GRAMMAR))
    patterns = [rule[key] for rule in rules for key in ("match", "begin") if key in rule]
    assert len(patterns) > 20
    for pattern in patterns:
        onigurumacffi.compile(pattern)
    names = {rule["include"][1:] for rule in rules if "include" in rule}
    assert names <= set(GRAMMAR["repository"])
    assert set(GRAMMAR["repository"]) <= names
    assert all(rule.get("begin") is None or "end" in rule for rule in rules)


# ── what the grammar makes of a text ────────────────────────────────────────────────────


class Colours:
    """Applies a TextMate grammar to a text, line by line, as an editor does: at each place, the
    rule that matches first and stands first."""

    def __init__(self) -> None:
        self.onigurumacffi = pytest.importorskip(
            "onigurumacffi", reason="onigurumacffi is missing: pip install -e '.[test]'"
        )
        self.compiled: dict[str, Any] = {}

    def find(self, pattern: str, line: str, start: int) -> Any:
        if pattern not in self.compiled:
            self.compiled[pattern] = self.onigurumacffi.compile(pattern)
        return self.compiled[pattern].search(line, start)

    def expand(self, rules: list[Any]) -> Iterator[dict[str, Any]]:
        for rule in rules:
            if "include" in rule:
                yield from self.expand([GRAMMAR["repository"][rule["include"][1:]]])
            elif "match" in rule or "begin" in rule:
                yield rule
            else:
                yield from self.expand(rule.get("patterns", []))

    def paint(self, text: str) -> list[tuple[str, str]]:
        """(text, scope) of each part that a rule gives a name; fails if a block is open at the
        end."""
        found: list[tuple[str, str]] = []
        stack: list[tuple[dict[str, Any], str]] = []
        for line in text.splitlines():
            at, row = 0, f"{line}\n"
            while at < len(row):
                rules = stack[-1][0].get("patterns", []) if stack else GRAMMAR["patterns"]
                choices = []
                if stack and (end := self.find(stack[-1][1], row, at)):
                    choices.append((end.start(), -1, None, end))
                for number, rule in enumerate(self.expand(rules)):
                    match = self.find(rule.get("match") or rule["begin"], row, at)
                    if match:
                        choices.append((match.start(), number, rule, match))
                if not choices:
                    break
                start, _, rule, match = min(choices, key=lambda one: one[:2])
                if rule is None:
                    closed, _ = stack.pop()
                    self.note(found, closed.get("endCaptures", {}), match)
                elif "begin" in rule:
                    self.note(found, rule.get("beginCaptures", {}), match)
                    name = match.group(1) if "\\1" in rule["end"] else ""
                    stack.append((rule, rule["end"].replace("\\1", name)))
                else:
                    captures = {**rule.get("captures", {}), "0": {"name": rule.get("name", "")}}
                    self.note(found, captures, match)
                at = max(match.end(), start + (rule is not None and "match" in rule))
                if match.end() == match.start() == len(line):
                    break
        assert not stack, [rule.get("name") for rule, _ in stack]
        return found

    def note(self, found: list[tuple[str, str]], captures: Any, match: Any) -> None:
        for number, capture in captures.items():
            text = match.group(int(number))
            for inner in capture.get("patterns", []):
                part = self.find(inner["match"], text or "", 0)
                if part:
                    found.append((part.group(0), inner["name"]))
            if text and capture.get("name"):
                found.append((text, capture["name"]))


def test_the_grammar_names_the_parts_of_a_text() -> None:
    """Blocks, labels, arguments, keys, strings with expressions in them, functions, comments."""
    text = (
        "# why\n"
        'resource "kafka_topic" "orders" {\n'
        '  name   = "a-${var.zone}"  // here\n'
        '  config = { "retention.ms" = retention("7d"), size = 12 }\n'
        "  list   = [for t in local.all : t.name if true]\n"
        "  text   = <<-END\n    {\n  END\n"
        "  lifecycle {\n    adopt = true\n  }\n}\n"
    )
    found = {
        (part.strip(), scope.removesuffix(".kafkaform")) for part, scope in Colours().paint(text)
    }
    assert {
        ("resource", "entity.name.type"),
        ('"kafka_topic"', "string.quoted.double.label"),
        ("name", "variable.other.property"),
        ("${", "punctuation.section.template.begin"),
        ("var", "variable.language"),
        ("zone", "variable.other.member"),
        ('"retention.ms"', "support.type.property-name"),
        ("retention", "support.function"),
        ("12", "constant.numeric"),
        ("for", "keyword.control"),
        ("true", "constant.language"),
        ("lifecycle", "entity.name.type"),
        ("adopt", "variable.other.property"),
    } <= found


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_grammar_ends_where_every_example_ends(path: Path) -> None:
    """Nothing is left open, so that no bracket or quote colours the rest of a file; each block of
    the file is one for the grammar."""
    text = path.read_text()
    found = Colours().paint(text)
    blocks = re.findall(r"^([a-z_]+)(?: \"[^\"]*\")* \{$", text, re.MULTILINE)
    named = [part for part, scope in found if scope.startswith("entity.name.type")]
    assert [one for one in blocks if one not in named] == []
    assert len(named) >= len(blocks) > 0


@pytest.mark.slow("installs packages from the registry of npm")
@pytest.mark.timeout(540)
def test_the_extension_is_packaged(tmp_path: Path) -> None:
    """By Microsoft's own packager: the package has the client, the grammar, the library that the
    client needs, and no tool that only packaging needs."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is missing, which packages the extension")
    folder = tmp_path / "extension"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("node_modules", "*.vsix"))
    quiet = ["--no-audit", "--no-fund", "--no-package-lock"]
    try:
        done = subprocess.run(
            [npm, "install", *quiet], cwd=folder, capture_output=True, text=True, timeout=240
        )
    except subprocess.TimeoutExpired:
        pytest.skip("npm did not bring vsce and vscode-languageclient in four minutes")
    if done.returncode:
        pytest.skip("npm cannot bring vsce and vscode-languageclient")
    made = subprocess.run(
        [npm, "run", "package"], cwd=folder, capture_output=True, text=True, timeout=250
    )
    assert made.returncode == 0, made.stderr
    check_package(folder / f"kafkaform-{VERSION}.vsix")


def check_package(path: Path) -> None:
    """The package has what an editor needs."""
    with zipfile.ZipFile(path) as package:
        names = set(package.namelist())
        manifest = json.loads(package.read("extension/package.json"))
    assert manifest["contributes"] == MANIFEST["contributes"]
    wanted = ("client.js", "language-configuration.json", "syntaxes/kafkaform.tmLanguage.json")
    assert {f"extension/{name}" for name in wanted} <= names
    assert "extension/node_modules/vscode-languageclient/package.json" in names
    assert "extension.vsixmanifest" in names
    assert not [name for name in names if "@vscode/vsce" in name]
