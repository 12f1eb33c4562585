"""Flags that several commands share, as one parameter of each."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

Command: TypeAlias = Callable[..., Any]


def takes(name: str, make: Callable[..., Any]) -> Callable[[Command], Command]:
    """Give a command the flags of `make`, and what that makes of them as its parameter `name`.

    Typer reads flags from signatures, so the command gets the one of both functions together.
    """
    flags = inspect.signature(make, eval_str=True).parameters

    def decorate(function: Command) -> Command:
        own = inspect.signature(function, eval_str=True)

        @wraps(function)
        def command(**given: Any) -> Any:
            made = make(**{flag: given.pop(flag) for flag in flags})
            return function(**{name: made}, **given)

        kept = [item for item in own.parameters.values() if item.name != name]
        every = [item.replace(kind=item.KEYWORD_ONLY) for item in (*kept, *flags.values())]
        command.__signature__ = own.replace(parameters=every)  # type: ignore[attr-defined]
        command.__annotations__ = {}
        return command

    return decorate
