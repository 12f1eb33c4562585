"""Functions that refer to secrets. A reference names the place of a value and never contains it."""

from __future__ import annotations

import re

from ...core.schema import STRING, list_of
from ...core.value import SecretRef, make_command_reference
from ..values.faults import FunctionFault
from ..values.value import ListVal, Val
from .spec import Function, Param, make_string_param

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


def _secret_command(command: ListVal) -> Val:
    # The words are the name of the secret, so plans show them. A sensitive word is refused by the
    # call itself, as for every reference.
    words = [word for word in command.items if isinstance(word, str)]
    if len(words) < len(command.items):
        raise FunctionFault("a word of the command is null", 0)
    if not words or not words[0]:
        raise FunctionFault("expected the name of a program, and its arguments", 0)
    if any("\0" in word for word in words):
        raise FunctionFault("a word of the command contains a zero byte", 0)
    return make_command_reference(words)


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
    Function(
        "secret_command",
        "The secret that a command prints, as a list of words; it runs only when the secret is "
        "needed, without a shell.",
        _secret_command,
        (Param("command", list_of(STRING)),),
    ),
)
