"""Functions that refer to secrets. A reference names the place of a value and never contains it."""

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
    # The value is not read here: it is resolved after the approval, right before it is sent.
    return SecretRef("env", name)


def _secret_file(path: str) -> Val:
    if not path or "\0" in path:
        raise FunctionFault("expected a path", 0)
    return SecretRef("file", path)


FUNCTIONS = (
    Function(
        "secret_env",
        "The secret in an environment variable; it is read only when it is sent.",
        _secret_env,
        (make_string_param("name"),),
    ),
    Function(
        "secret_file",
        "The secret in a file; it is read only when it is sent.",
        _secret_file,
        (make_string_param("path"),),
    ),
)
