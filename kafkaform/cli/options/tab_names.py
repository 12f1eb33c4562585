"""Complete addresses and names of live objects in the user's own shell, within a time limit.

A key press must neither hang nor fail: whatever goes wrong, nothing is offered.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, MutableMapping
from threading import Thread

import typer

from .. import options

SECONDS = 2.0
"""The longest that a key press waits for a state or a system."""
COMPLETE, BASH = "_KAFKAFORM_COMPLETE", "complete_bash"
"""The variable with which a shell asks for completions, and its value in bash."""
WORDS, WORD, PREFIX = "COMP_WORDS", "COMP_CWORD", "_KAFKAFORM_COMPLETE_PREFIX"
_QUOTED = frozenset("\"'\\ $`[]")
"""Characters that mean something to a shell."""


def complete_addresses(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the addresses of the state and of the configuration."""
    return offer_within_limit(lambda: options.completion.list_addresses(context), incomplete)


def complete_objects(context: typer.Context, incomplete: str) -> list[str]:
    """Offer addresses, and kinds and names, of everything that state and log know."""
    return offer_within_limit(lambda: options.completion.list_objects(context), incomplete)


def complete_runs(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the ids of the newest runs."""
    return offer_within_limit(lambda: options.completion.list_runs(context), incomplete)


def complete_names(
    context: typer.Context, incomplete: str, complete: Callable[..., Iterable[str]]
) -> list[str]:
    """Offer what a command of a provider completes, over a connection of its own.

    complete: see `Complete` in `provider/commands.py`.
    """
    return offer_within_limit(lambda: options.completion.ask_names(context, complete), incomplete)


def complete_conditions(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the conditions of --fail-on, also behind a comma."""
    return _complete_list(lambda: options.completion.list_conditions(context), incomplete)


def complete_findings(context: typer.Context, incomplete: str) -> list[str]:
    """Offer levels, harms and rules, also behind a comma."""
    return _complete_list(lambda: options.completion.list_finding_words(), incomplete)


def _complete_list(find: Callable[[], Iterable[str]], incomplete: str) -> list[str]:
    before = incomplete.rpartition(",")[0]
    prefix = f"{before}," if before else ""
    return offer_within_limit(lambda: (f"{prefix}{name}" for name in find()), incomplete)


def complete_accepted(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the rules whose blocks can be lifted, and addresses behind `=`."""
    rule, equals, _ = f"{os.environ.get(PREFIX, '')}{incomplete}".partition("=")
    if equals:
        return offer_within_limit(
            lambda: (f"{rule}={address}" for address in options.completion.list_addresses(context)),
            incomplete,
        )
    return offer_within_limit(lambda: options.completion.list_liftable(), incomplete)


def complete_rules(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the ids of all rules."""
    return offer_within_limit(lambda: options.completion.list_rules(), incomplete)


def offer_within_limit(find: Callable[[], Iterable[str]], incomplete: str) -> list[str]:
    """The names that `find` finds in time and that begin with what was typed."""
    offered: list[str] = []

    def collect() -> None:
        try:
            offered.extend(find())
        except Exception:  # noqa: BLE001  # a shell has no place for an error at a key press
            offered.clear()

    # A client that waits for a system cannot be stopped from outside. Its thread ends with the
    # process, which is over as soon as the names are printed.
    worker = Thread(target=collect, daemon=True)
    worker.start()
    worker.join(SECONDS)
    prefix = os.environ.get(PREFIX, "")
    names = sorted({name for name in tuple(offered) if name.startswith(prefix + incomplete)})
    # A name that the shell would take apart is left out, since each shell quotes in its own way.
    return [name[len(prefix) :] for name in names if not _QUOTED.intersection(name)]


def mend_bash_words(environment: MutableMapping[str, str]) -> None:
    """Join what bash takes apart at `:` and `=`: it hands `User:ci` on as three words.

    The part before the last colon stays on the command line, so it is kept in PREFIX and no
    candidate repeats it.
    """
    if environment.get(COMPLETE) != BASH:
        return
    try:
        number = int(environment[WORD])
    except (KeyError, ValueError):
        return
    line = environment.get(WORDS, "")
    # The function that typer installs joins them with line feeds.
    gap = "\n" if "\n" in line else " "
    words = line.split(gap)
    before, current = words[:number], "".join(words[number : number + 1])
    if current in (":", "="):
        before, current = [*before, current], ""
    prefix = ""
    if before[-1:] == [":"] and len(before) > 1:
        prefix = f"{before[-2]}:"
        before = before[:-2]
    if before[-1:] == ["="] and len(before) > 1 and not before[-2].startswith("-"):
        prefix = f"{before[-2]}={prefix}"
        before = before[:-2]
    if before[-1:] == ["="]:
        before = before[:-1]
    environment[WORDS] = gap.join((*before, current))
    environment[WORD] = str(len(before))
    environment[PREFIX] = prefix
