"""The shape of the code is law: who may import whom, how long things are, what never occurs."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from .kit.sources import PACKAGES, ROOT, list_nodes, list_sources

KAFKAFORM, PROVIDERS = PACKAGES

DESIGN = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60
MAX_MODULES = 22
"""In a folder, beside its `__init__.py` and its sub-folders."""


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def module_name(path: Path) -> tuple[str, ...]:
    """('kafkaform', 'plan', 'build') or ('kafkaform_kafka', 'provider')."""
    base = PROVIDERS if path.is_relative_to(PROVIDERS) else ROOT
    parts = path.relative_to(base).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


@cache
def imports(path: Path) -> tuple[tuple[str, ...], ...]:
    """Every import in the file, function-level and TYPE_CHECKING ones too, made absolute."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[tuple[str, ...]]:
    package = module_name(path) if path.name == "__init__.py" else module_name(path)[:-1]
    for node in list_nodes(path):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield tuple(name.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            stem = (*base, *(node.module or "").split(".")) if node.module else base
            for name in node.names:
                yield (*stem, name.name)


def own(imported: tuple[str, ...]) -> tuple[str, ...] | None:
    """As the tables name it: the part after `kafkaform`, or all of a provider's; None for a
    foreign module, () for the root of the package."""
    if imported[0] == "kafkaform":
        return () if imported[1:] == ("__main__",) else imported[1:]
    return imported if imported[0].startswith("kafkaform_") else None


@cache
def folders() -> frozenset[str]:
    """`plan`, `language/values`, `kafkaform_kafka/wire`: every folder that holds modules."""
    own_names = (own(module_name(path.parent / "__init__.py")) for path in list_sources())
    return frozenset("/".join(name) for name in own_names if name)


@cache
def allowed_imports() -> dict[str, frozenset[str]]:
    """The table of architecture §2: folder -> what it may import, folders or single modules. The
    rows of `workflow` and `cli`, which end in words, are left out."""
    lines = DESIGN.split("| folder | may import |")[1].split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {
        name.strip("`"): frozenset(expand(re.findall("`([^`]+)`", may)))
        for name, may in cells
        if not name.endswith("folders")
    }


def expand(names: Iterable[str]) -> Iterator[str]:
    """`a/{b,c}` stands for `a/b` and `a/c`."""
    for name in names:
        stem, brace, rest = name.partition("{")
        yield from (stem + part for part in rest.rstrip("}").split(",")) if brace else (name,)


def floors() -> dict[str, int]:
    """The picture of architecture §2: package -> its floor."""
    found: dict[str, int] = {}
    floor = 0
    for line in DESIGN.split("keeps this picture true:")[1].split("```")[1].splitlines():
        if line.strip():
            floor = int(line[:3]) if line[:3].strip() else floor
            found |= dict.fromkeys(re.split(r"\s{3,}", line[4:])[0].split(), floor)
    return found


@cache
def folder_of(target: str) -> str | None:
    """The folder that holds a module, as `folders` names it; None if there is none."""
    return max((f for f in folders() if f"{target}/".startswith(f"{f}/")), default=None)


def may_import(folder: str, target: str) -> bool:
    """Whether architecture §2 allows a folder to import a folder or a module."""
    home = folder_of(target)
    if home is None or home == folder:
        return True
    if folder.partition("/")[0] == "cli":
        return not home.startswith("kafkaform_")
    if folder.partition("/")[0] == "workflow":
        return not home.startswith(("cli", "editor"))
    may = allowed_imports()[folder]
    return home in may or any(f"{target}/".startswith(f"{one}/") for one in may)


def test_imports_follow_the_table() -> None:
    """Each folder imports only what architecture §2 allows it, and nothing stands below itself."""
    wrong = []
    for path in list_sources():
        name = own(module_name(path))
        # The root, which is the way in, has no name.
        folder = "/".join((name if path.name == "__init__.py" else name[:-1]) if name else ())
        wrong += [
            f"{shown(path)} imports {'.'.join(imported)}"
            for imported in (imports(path) if folder else ())
            if not may_import(folder, "/".join(own(imported) or ()))
        ]
    assert not wrong, "docs/architecture.md, 2, does not allow: " + "; ".join(wrong)


def crosses(importer: tuple[str, ...], imported: tuple[str, ...]) -> bool:
    """True where one provider imports another. Both as `own` names them."""
    both = {importer[0], imported[0]} if importer and imported else set()
    return len(both) == 2 and all(name.startswith("kafkaform_") for name in both)


def test_providers_do_not_import_each_other() -> None:
    """A provider can be installed, changed and removed without a look at any other: neither a
    file nor the table of imports joins two of them."""
    assert crosses(("kafkaform_connect", "session"), ("kafkaform_kafka", "connection", "tls"))
    assert not crosses(("kafkaform_kafka", "session"), ("kafkaform_kafka", "wire", "client"))
    assert not crosses(("fleet", "access"), ("kafkaform_kafka", "authority", "authorizer"))
    for path in list_sources():
        name = own(module_name(path))
        for imported in imports(path):
            assert not crosses(name or (), own(imported) or ()), f"{path}: {'.'.join(imported)}"
    for folder, may in allowed_imports().items():
        joined = [one for one in may if crosses((folder.split("/")[0],), (one.split("/")[0],))]
        assert not joined, f"docs/architecture.md lets {folder} import {joined}"


def test_the_tables_name_every_folder() -> None:
    """The table of imports has a row for each folder and no other; so has the picture for each
    package."""
    listed = {f for f in folders() if f.partition("/")[0] not in ("workflow", "cli", "fleet")}
    listed |= {f for f in folders() if f.startswith("fleet/")}
    assert set(allowed_imports()) == listed
    assert set(floors()) == {f.partition("/")[0] for f in folders()}


def test_each_package_stands_above_what_it_imports() -> None:
    """The picture of the floors tells the truth."""
    floor = floors()
    for path in list_sources():
        name = own(module_name(path))
        for imported in imports(path) if name else ():
            target = own(imported)
            if target and target[0] in floor and target[0] != name[0]:
                assert floor[name[0]] > floor[target[0]], f"{path}: {'.'.join(imported)}"


def test_folders_import_each_other_without_circles() -> None:
    """No folder needs another one that needs it."""
    graph: dict[str, set[str]] = {folder: set() for folder in folders()}
    for path in list_sources():
        name = own(module_name(path))
        folder = "/".join((name if path.name == "__init__.py" else name[:-1]) if name else ())
        for imported in imports(path) if folder else ():
            target = "/".join(own(imported) or ())
            graph[folder] |= {folder_of(target) or folder} - {folder}
    order = TopologicalSorter(graph)
    order.prepare()  # raises CycleError, with the circle


def test_folders_stay_small() -> None:
    """A folder is read at a glance."""
    modules = Counter(path.parent for path in list_sources() if path.name != "__init__.py")
    large = {shown(folder): many for folder, many in modules.items() if many > MAX_MODULES}
    assert not large


def test_modules_import_each_other_without_cycles() -> None:
    """The import graph of the modules has no cycle."""
    known = {module_name(p): p for p in list_sources()}
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


def test_files_and_functions_stay_short() -> None:
    """Files stay under 600 lines, functions under 60, and every function says what it returns."""
    wrong = []
    for path in list_sources():
        if len(path.read_text(encoding="utf-8").splitlines()) > MAX_FILE_LINES:
            wrong.append(f"{shown(path)} is long")
        for node in list_nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                place = f"{shown(path)}:{node.lineno}: {node.name}"
                if (node.end_lineno or 0) - node.lineno >= MAX_FUNCTION_LINES:
                    wrong.append(f"{place} is long")
                if node.returns is None:
                    wrong.append(f"{place} does not say what it returns")
    assert not wrong, "\n".join(wrong)


def calls(path: Path) -> Iterator[tuple[str, str]]:
    """What a file calls by a bare name: the name, and where."""
    for node in list_nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id, f"{shown(path)}:{node.lineno}: {node.func.id}"


def test_only_cli_and_render_print() -> None:
    """Nothing but the command line and the renderers prints, and nothing loads pickles."""
    wrong = []
    for path in list_sources():
        loud = module_name(path)[1:2] in (("cli",), ("render",))
        never = {"eval", "exec"} if loud else {"eval", "exec", "print"}
        wrong += [place for name, place in calls(path) if name in never]
        loaded = {"pickle", "marshal", "shelve"} & {imported[0] for imported in imports(path)}
        wrong += [f"{shown(path)} imports {name}" for name in loaded]
    assert not wrong, "\n".join(wrong)


TERMINAL = {
    *("sys.stdout", "sys.stderr", "sys.stdin"),
    *("sys.__stdout__", "sys.__stderr__", "sys.__stdin__"),
    *("os.write", "signal.signal", "signal.set_wakeup_fd"),
}
"""What only a program that owns its terminal and its process may touch."""


def test_only_cli_knows_how_things_are_drawn() -> None:
    """Nothing below `cli` imports a library of command lines or screens, wherever in a file."""
    below = [path for path in list_sources() if module_name(path)[1:2] != ("cli",)]
    drawing = {"typer", "click", "rich"}
    assert not [shown(p) for p in below if drawing & {imported[0] for imported in imports(p)}]


def test_operations_leave_terminal_and_signals_alone() -> None:
    """A workflow function prints nothing, asks nobody at a keyboard, and installs no handler: it
    may run in a service or a notebook."""
    hidden = {("sys", "stdout"), ("sys", "stderr"), ("sys", "stdin"), ("signal", "signal")}
    wrong = []
    for path in (path for path in list_sources() if module_name(path)[1:2] == ("workflow",)):
        wrong += [place for name, place in calls(path) if name in ("print", "input")]
        for node in list_nodes(path):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used = f"{node.value.id}.{node.attr}"
                wrong += [f"{shown(path)}:{node.lineno}: {used}"] if used in TERMINAL else []
        if hidden & {imported[:2] for imported in imports(path)}:
            wrong.append(f"{shown(path)} imports the terminal or a handler")
    assert not wrong, "\n".join(wrong)


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


def test_only_the_parser_and_the_evaluation_know_of_passed_over_blocks() -> None:
    """A block that repeats an earlier one is a `Block` like any other, except to those who save
    time by it."""
    module = ("kafkaform", "syntax", "stamps")
    knowing = [path for path in list_sources() if module in {one[:3] for one in imports(path)}]
    for name in map(module_name, knowing):
        assert name[1:2] == ("syntax",) or name[1:3] == ("language", "evaluate"), name
