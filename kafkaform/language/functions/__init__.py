"""The functions of the language: pure, without network, clock or environment.

Some of Terraform's functions are left out on purpose: those whose result differs from run to run
(timestamp, uuid, bcrypt), those that reveal something about the machine (pathexpand, abspath), and
everything that could read files outside the root of the configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from .file_reader import Read
from .spec import Function

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Time and size": ("units",),
    "Lists, tuples and sets": (
        "collection",
        "sets",
    ),
    "Maps and objects": ("mappings",),
    "Strings": (
        "string",
        "formatting",
        "patterns",
    ),
    "Numbers": ("number",),
    "Types and secrets": (
        "kind",
        "secrets",
    ),
    "Encodings": (
        "encoding",
        "yamltext",
    ),
    "Digests": ("digests",),
    "Files": ("files",),
    "Dates": ("dates",),
    "Network addresses": ("network",),
    "Assumptions": ("assume",),
}
"""Heading of the documentation -> the modules that it covers."""

NAMES: Mapping[str, str] = {
    "units": "retention bytes",
    "collection": (
        "chunklist coalescelist compact concat contains distinct element flatten index length "
        "matchkeys one range reverse slice sort"
    ),
    "sets": (
        "alltrue anytrue setintersection setproduct setsubtract setsymmetricdifference setunion"
    ),
    "mappings": "keys lookup merge transpose values zipmap",
    "string": (
        "basename dirname chomp endswith indent join lower split startswith strcontains strrev "
        "substr title trim trimprefix trimspace trimsuffix upper"
    ),
    "formatting": "format formatlist",
    "patterns": "regex regexall replace",
    "number": "abs ceil floor log max min parseint pow signum sum",
    "kind": (
        "tostring tonumber tobool tolist toset tomap sensitive nonsensitive issensitive coalesce"
    ),
    "secrets": "secret_env secret_file secret_command",
    "encoding": (
        "base64decode base64gunzip base64encode csvdecode jsondecode jsonencode textdecodebase64 "
        "textencodebase64 urldecode urlencode"
    ),
    "yamltext": "yamldecode yamlencode",
    "digests": "md5 sha1 sha256 sha512 base64sha256 base64sha512 uuidv5",
    "files": (
        "file filebase64 filemd5 filesha1 filesha256 filesha512 filebase64sha256 filebase64sha512 "
        "fileexists fileset"
    ),
    "dates": "formatdate timeadd timecmp",
    "network": "cidrcontains cidrhost cidrnetmask cidrsubnet cidrsubnets",
    "assume": (
        "assumeequal assumenotnull assumestringprefix assumelistlength assumelistlengthmin "
        "assumelistlengthmax assumesetlength assumesetlengthmin assumesetlengthmax "
        "assumemaplength assumemaplengthmin assumemaplengthmax"
    ),
}
"""Module -> its functions, in the documentation's order. A configuration uses a few functions,
and its start should not wait for the modules of the others."""

_MODULES = {name: module for module, names in NAMES.items() for name in names.split()}


class FunctionTable(Mapping[str, Function]):
    """Every function by name. A module is loaded when one of its functions is first looked up.

    read: how files are read; None turns the functions that read files off.
    """

    def __init__(self, read: Read | None = None) -> None:
        self._read = read
        self._loaded: dict[str, Function] = {}

    def __getitem__(self, name: str) -> Function:
        if name not in self._loaded:
            functions = _load_functions(_MODULES[name], self._read)
            self._loaded.update((function.name, function) for function in functions)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in _MODULES

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


def group_functions(read: Read | None = None) -> Mapping[str, tuple[Function, ...]]:
    """Every function under the heading that the documentation has for it."""
    return {
        title: tuple(function for module in modules for function in _load_functions(module, read))
        for title, modules in GROUPS.items()
    }


def _load_functions(module: str, read: Read | None) -> tuple[Function, ...]:
    loaded = import_module(f".{module}", __name__)
    # These two have a state: how files are read, and how much time patterns have left.
    if module == "files":
        return tuple(loaded.file_functions(read))
    return tuple(loaded.pattern_functions() if module == "patterns" else loaded.FUNCTIONS)
