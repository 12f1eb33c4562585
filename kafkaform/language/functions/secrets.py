"""References to secrets: they name where the value is and never hold it."""

from __future__ import annotations

import re

from ...core.value import SecretRef
from ..values.faults import FunctionFault
from ..values.value import Val
from .spec import Function, make_string_param

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _secret_env(name: str) -> Val:
    if not _VARIABLE.fullmatch(name):
        raise FunctionFault("this is not the name of an environment variable", 0)
    return SecretRef("env", name)


def _secret_file(path: str) -> Val:
    if not path or "\0" in path:
        raise FunctionFault("a path is needed", 0)
    return SecretRef("file", path)


FUNCTIONS = (
    Function(
        "secret_env",
        "A secret that an environment variable holds; read only when it is sent.",
        _secret_env,
        (make_string_param("name"),),
    ),
    Function(
        "secret_file",
        "A secret that a file holds; read only when it is sent.",
        _secret_file,
        (make_string_param("path"),),
    ),
)
