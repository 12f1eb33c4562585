"""What turns data into code has no place in the product: found in its syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

import pytest

from ...kit.sources import ROOT, list_nodes, list_sources

MODULES = frozenset(
    (
        *("pickle", "_pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"),
        *("jsonpickle", "zipimport", "zipapp", "tarfile", "zipfile", "code", "codeop", "xmlrpc"),
        *("imp", "ctypes"),
    )
)
"""Modules that make objects of bytes, or unpack archives whose members name their own places."""
BUILTINS = frozenset({"eval", "exec", "compile", "__import__", "breakpoint"})
CALLS = frozenset(
    {"yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load", "os.system", "os.popen"}
    | {"tempfile.mktemp", "jinja2.Template", "ssl._create_unverified_context"}
    | {"runpy.run_path", "runpy.run_module", "pty.spawn", "Environment.from_string"}
)
ALLOWED = {
    (
        "kafkaform/cli/terminal/signals.py",
        "ctypes",
    ): "has Linux end a child with its parent",
    (
        "kafkaform/sandbox/servers/start.py",
        "tarfile",
    ): "reads files of pinned names and checksums, and gives each of them a place of its own",
}


def banned(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and name of everything in a syntax tree that is not wanted."""
    for node in nodes:
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call):
            names = [name] if (name := _called(node.func)) in BUILTINS | CALLS else []
            if any(k.arg == "shell" and _true(k.value) for k in node.keywords):
                yield line, "shell=True"
        else:
            continue
        for name in names:
            first = name.partition(".")[0]
            if first in MODULES or name in BUILTINS | CALLS:
                yield line, first if first in MODULES else name


def _called(function: ast.expr) -> str:
    """`f` or `module.f`; "" for what is called otherwise."""
    if isinstance(function, ast.Name):
        return function.id
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return f"{function.value.id}.{function.attr}"
    return ""


def _true(value: ast.expr) -> bool:
    return not (isinstance(value, ast.Constant) and not value.value)


def test_the_product_makes_no_code_of_data() -> None:
    """No pickle, marshal, shelve, eval, exec, unsafe YAML, shell, or archive anywhere; the
    exceptions are named with their reason."""
    found = {
        (str(path.relative_to(ROOT)), name): line
        for path in list_sources()
        for line, name in banned(list_nodes(path))
    }
    assert found.keys() == ALLOWED.keys(), found
    assert len(list_sources()) > 200


SAMPLES = (
    *("import pickle", "from marshal import loads", "import shelve as s", "eval('1')", "exec(x)"),
    *("yaml.load(x)", "yaml.unsafe_load(x)", "from yaml import full_load", "os.system('x')"),
    *("subprocess.run('x', shell=True)", "compile(x, '', 'exec')", "import zipfile"),
    *("def f():\n    import pickle", "__import__('os')", "from jinja2 import Template"),
    "if TYPE_CHECKING:\n    import dill",
)


@pytest.mark.parametrize("text", SAMPLES)
def test_each_of_them_would_be_found(text: str) -> None:
    """Whatever the way of writing it."""
    assert list(banned(ast.walk(ast.parse(text))))


@pytest.mark.parametrize("text", ["re.compile('x')", "yaml.safe_load(x)", "run(shell=False)"])
def test_what_is_harmless_is_not(text: str) -> None:
    """A rule that shouts at everything is turned off."""
    assert not list(banned(ast.walk(ast.parse(text))))
