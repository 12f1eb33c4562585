"""Give several commands the same flags, as one parameter of each."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

Command: TypeAlias = Callable[..., Any]


def take_flags(
    name: str, make: Callable[..., Any], *, first: bool = False
) -> Callable[[Command], Command]:
    """Give a command the flags of `make`, and the result of `make` as its parameter `name`.

    first: help lists them before the flags of the command.
    """
    # Typer reads flags from signatures, so the command gets one made of both signatures (PEP 362).
    flags = inspect.signature(make, eval_str=True).parameters

    def decorate(function: Command) -> Command:
        own = inspect.signature(function, eval_str=True)

        @wraps(function)
        def command(**values: Any) -> Any:
            group = make(**{flag: values.pop(flag) for flag in flags})
            return function(**{name: group}, **values)

        parameters = [item for item in own.parameters.values() if item.name != name]
        ordered = (*flags.values(), *parameters) if first else (*parameters, *flags.values())
        every = [item.replace(kind=item.KEYWORD_ONLY) for item in ordered]
        command.__signature__ = own.replace(parameters=every)  # type: ignore[attr-defined]  # PEP 362
        command.__annotations__ = {}
        return command

    return decorate
