"""The functions of the language: pure, without network, clock or environment.

Some of Terraform's functions are left out on purpose: those whose result differs from run to run
(timestamp, uuid, bcrypt), those that reveal something about the machine (pathexpand, abspath), and
everything that could read files outside the root of the configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from .files import Read
from .spec import Function

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Time and size": {"number": "retention bytes"},
    "Lists, tuples and sets": {
        "collection": (
            "chunklist coalescelist compact concat contains distinct element flatten index length "
            "matchkeys one range reverse slice sort alltrue anytrue setintersection setproduct "
            "setsubtract setsymmetricdifference setunion"
        ),
    },
    "Maps and objects": {"collection": "keys lookup merge transpose values zipmap"},
    "Strings": {
        "string": (
            "basename dirname chomp endswith indent join lower split startswith strcontains strrev "
            "substr title trim trimprefix trimspace trimsuffix upper regex regexall replace"
        ),
        "encoding": "format formatlist",
    },
    "Numbers": {"number": "abs ceil floor log max min parseint pow signum sum"},
    "Types and secrets": {
        "kinds": (
            "tostring tonumber tobool tolist toset tomap sensitive nonsensitive issensitive "
            "coalesce secret_env secret_file secret_command"
        ),
    },
    "Encodings": {
        "encoding": (
            "base64decode base64gunzip base64encode csvdecode jsondecode jsonencode "
            "textdecodebase64 textencodebase64 urldecode urlencode"
        ),
        "yamltext": "yamldecode yamlencode",
    },
    "Digests": {"files": "md5 sha1 sha256 sha512 base64sha256 base64sha512 uuidv5"},
    "Files": {
        "files": (
            "file filebase64 filemd5 filesha1 filesha256 filesha512 filebase64sha256 "
            "filebase64sha512 fileexists fileset"
        ),
    },
    "Dates": {"dates": "formatdate timeadd timecmp"},
    "Network addresses": {"network": "cidrcontains cidrhost cidrnetmask cidrsubnet cidrsubnets"},
    "Assumptions": {
        "kinds": (
            "assumeequal assumenotnull assumestringprefix assumelistlength assumelistlengthmin "
            "assumelistlengthmax assumesetlength assumesetlengthmin assumesetlengthmax "
            "assumemaplength assumemaplengthmin assumemaplengthmax"
        ),
    },
}
"""Heading of the documentation -> module -> its functions. A configuration uses a few functions,
and its start does not wait for the modules of the others."""

_MODULES = {
    name: module
    for modules in GROUPS.values()
    for module, names in modules.items()
    for name in names.split()
}


class FunctionTable(Mapping[str, Function]):
    """Every function by name. A module is loaded when one of its functions is first looked up.

    read: how files are read; None turns the functions that read files off.
    """

    def __init__(self, read: Read | None = None) -> None:
        self._read = read
        self._loaded: dict[str, Function] = {}

    def __getitem__(self, name: str) -> Function:
        if name not in self._loaded:
            module = _MODULES[name]
            loaded = import_module(f".{module}", __name__)
            functions = list(loaded.FUNCTIONS)
            # These two have a state: how files are read, and how much time patterns have left.
            if module == "files":
                functions += loaded.file_functions(self._read)
            if module == "string":
                functions += loaded.pattern_functions()
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
    table = FunctionTable(read)
    return {
        title: tuple(table[name] for names in modules.values() for name in names.split())
        for title, modules in GROUPS.items()
    }
