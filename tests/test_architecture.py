"""The shape of the code is law: who may import whom, how long things are, what never occurs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
KAFKAFORM, PROVIDERS = ROOT / "kafkaform", ROOT / "providers"

# package -> packages (or single modules) that it may import, architecture §2
ALLOWED = {
    "core": set(),
    "syntax": {"core"},
    "language": {"core", "syntax"},
    "provider": {"core"},
    "state": {"core"},
    "audit": {"core"},
    "plan": {"core", "provider", "state"},
    "apply": {"core", "provider", "state", "audit", "plan"},
    "render": {"core", "plan.model"},
    "jvm": {"core"},
    "sandbox": {"core", "jvm"},
    "inventory": {"core", "provider", "state", "audit"},
    "fleet": {
        "core",
        "jvm",
        "kafkaform_kafka.authority.authorizer",
        "kafkaform_kafka.kinds.acl.resource_type",
        "kafkaform_kafka.kinds.quota.levels",
    },
    "kafkaform_kafka": {"core", "provider"},
}
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60


def sources() -> list[Path]:
    return sorted([*KAFKAFORM.rglob("*.py"), *PROVIDERS.rglob("*.py")])


def module_name(path: Path) -> tuple[str, ...]:
    """('kafkaform', 'plan', 'build') or ('kafkaform_kafka', 'provider')."""
    base = PROVIDERS if path.is_relative_to(PROVIDERS) else ROOT
    parts = path.relative_to(base).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All of a file's, in no order that matters."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imports(path: Path) -> Iterator[tuple[str, ...]]:
    """Every import in the file, function-level and TYPE_CHECKING ones too, made absolute."""
    package = module_name(path) if path.name == "__init__.py" else module_name(path)[:-1]
    for node in nodes(path):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield tuple(name.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            stem = (*base, *(node.module or "").split(".")) if node.module else base
            for name in node.names:
                yield (*stem, name.name)


def own(imported: tuple[str, ...]) -> tuple[str, ...] | None:
    """The part after `kafkaform`, or all of a provider's; None for a foreign module."""
    if imported[0] == "kafkaform":
        return imported[1:]
    return imported if imported[0].startswith("kafkaform_") else None


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_follow_the_table(path: Path) -> None:
    """Each package imports only what architecture §2 allows it."""
    name = module_name(path)
    package = name[1] if name[0] == "kafkaform" and len(name) > 1 else name[0]
    if package not in ALLOWED:
        return  # cli and the package root may import everything
    for imported in imports(path):
        target = own(imported)
        if not target or target[0] == package:
            continue
        allowed = any(".".join(target).startswith(a) for a in ALLOWED[package])
        assert allowed, f"{'.'.join(name)} must not import {'.'.join(imported)}"


def test_modules_import_each_other_without_cycles() -> None:
    """The import graph of the modules has no cycle."""
    known = {module_name(p): p for p in sources()}
    graph: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for name, path in known.items():
        graph[name] = set()
        for imported in imports(path):
            for candidate in (imported, imported[:-1]):
                if candidate in known and candidate != name:
                    graph[name].add(candidate)
                    break
    finished: set[tuple[str, ...]] = set()

    def walk(name: tuple[str, ...], trail: tuple[tuple[str, ...], ...]) -> None:
        assert name not in trail, " -> ".join(".".join(n) for n in (*trail, name))
        if name in finished:
            return
        for target in graph[name]:
            walk(target, (*trail, name))
        finished.add(name)

    for name in graph:
        walk(name, ())


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(ROOT)))
def test_files_and_functions_stay_short(path: Path) -> None:
    """Files stay under 400 lines, functions under 60, and every function says what it returns."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_FILE_LINES
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < MAX_FUNCTION_LINES, node.name
            assert node.returns is not None, f"{node.name} does not say what it returns"


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(ROOT)))
def test_only_cli_and_render_print(path: Path) -> None:
    """Nothing but the command line and the renderers prints, and nothing loads pickles."""
    name = module_name(path)
    loud = len(name) > 1 and name[1] in ("cli", "render")
    for node in nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert loud or node.func.id != "print", f"print in line {node.lineno}"
            # As the standard decorator does, from nothing but names in our own code.
            allowed = name == ("kafkaform", "core", "dataclass") and node.func.id == "exec"
            banned = ("eval", "exec")
            assert allowed or node.func.id not in banned, f"{node.func.id} in line {node.lineno}"
    assert not {"pickle", "marshal", "shelve"} & {imported[0] for imported in imports(path)}


def test_every_package_says_what_it_must_not_know() -> None:
    """Each package opens with what comes in, what goes out, and what it must not know."""
    for package in sorted(KAFKAFORM.iterdir()):
        init = package / "__init__.py"
        if package.is_dir() and init.exists() and any(package.glob("*.py")):
            doc = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
            assert "In:" in doc and "Out:" in doc and "ust not know" in doc, package.name


def kept(folder: Path) -> Iterator[Path]:
    """All files, but for what tools have put there."""
    skipped = {".venv", ".git", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"}
    for path in folder.iterdir():
        if path.is_file():
            yield path
        elif path.is_dir() and not path.is_symlink() and path.name not in skipped:
            yield from kept(path)


def test_no_registry_address_and_no_machine_path_in_the_repository() -> None:
    """No package registry is addressed anywhere, and no path of somebody's machine is kept."""
    hosts = ("maven" + ".org", "pypi" + ".org", "python" + "hosted", "npm" + "js", "crates" + ".io")
    suffixes = {".py", ".md", ".toml", ".txt", ".hcl", ".j2", ".json", ".jsonl", ".yml", ""}
    for path in kept(ROOT):
        if path.suffix not in suffixes:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        for host in hosts:
            assert host not in text, f"{path.relative_to(ROOT)} names {host}"
        assert str(ROOT) + "/" not in text, f"{path.relative_to(ROOT)} holds a machine's path"
