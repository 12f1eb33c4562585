"""Complete addresses and names of live objects in the user's own shell, within a time limit.

A key press must neither hang nor fail: whatever goes wrong, nothing is offered.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import typer

SECONDS = 2.0
"""The longest that a key press waits for a state or a system."""
COMPLETE, BASH = "_KAFKAFORM_COMPLETE", "complete_bash"
"""The variable with which a shell asks for completions, and its value in bash."""
WORDS, WORD, PREFIX = "COMP_WORDS", "COMP_CWORD", "_KAFKAFORM_COMPLETE_PREFIX"
_QUOTED = frozenset("\"'\\ $`[]")
"""Characters that mean something to a shell."""


def complete_addresses(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the addresses of the state and of the configuration."""
    return offer_within_limit(lambda: _list_addresses(context), incomplete)


def complete_objects(context: typer.Context, incomplete: str) -> list[str]:
    """Offer addresses, and kinds and names, of everything that state and log know."""
    return offer_within_limit(lambda: _list_objects(context), incomplete)


def complete_runs(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the ids of the newest runs."""
    return offer_within_limit(lambda: _list_runs(context), incomplete)


def complete_names(
    context: typer.Context, incomplete: str, complete: Callable[..., Iterable[str]]
) -> list[str]:
    """Offer what a command of a provider completes, over a connection of its own.

    complete: see `Complete` in `provider/commands.py`.
    """
    return offer_within_limit(lambda: _ask_names(context, complete), incomplete)


def complete_conditions(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the conditions of --fail-on, also behind a comma."""
    return _complete_list(lambda: _list_conditions(context), incomplete)


def complete_findings(context: typer.Context, incomplete: str) -> list[str]:
    """Offer levels, harms and rules, also behind a comma."""
    return _complete_list(_list_finding_words, incomplete)


def _complete_list(find: Callable[[], Iterable[str]], incomplete: str) -> list[str]:
    before = incomplete.rpartition(",")[0]
    prefix = f"{before}," if before else ""
    return offer_within_limit(lambda: (f"{prefix}{name}" for name in find()), incomplete)


def complete_accepted(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the rules whose blocks can be lifted, and addresses behind `=`."""
    rule, equals, _ = f"{os.environ.get(PREFIX, '')}{incomplete}".partition("=")
    if equals:
        return offer_within_limit(
            lambda: (f"{rule}={address}" for address in _list_addresses(context)), incomplete
        )
    return offer_within_limit(_list_liftable, incomplete)


def complete_rules(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the ids of all rules."""
    return offer_within_limit(_list_rules, incomplete)


def offer_within_limit(find: Callable[[], Iterable[str]], incomplete: str) -> list[str]:
    """The names that `find` finds in time and that begin with what was typed."""
    from threading import Thread  # noqa: PLC0415  # only completion needs it

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


def _list_conditions(context: typer.Context) -> Iterator[str]:
    from contextlib import suppress  # noqa: PLC0415  # only completion needs these modules

    from ...core.errors import KafkaformError  # noqa: PLC0415  # see above
    from ...workflow.configuration.policies import list_policy_ids  # noqa: PLC0415  # see above
    from ...workflow.judgement import CONDITIONS  # noqa: PLC0415  # see above

    yield from (*CONDITIONS, *_list_rules())
    _enter_folder(context)
    with suppress(KafkaformError):
        yield from list_policy_ids(context.params.get("policy") or ())


def _list_finding_words() -> Iterable[str]:
    from ...workflow.judgement import WORDS  # noqa: PLC0415  # only completion needs it

    return (*WORDS, *_list_rules())


def _list_rules() -> Iterable[str]:
    from ...provider.registry import Registry  # noqa: PLC0415  # only completion needs it
    from ...workflow.judgement import find_rules  # noqa: PLC0415  # see above

    return find_rules(Registry())


def _list_liftable() -> Iterable[str]:
    from ...provider.registry import Registry  # noqa: PLC0415  # only completion needs it
    from ...workflow.judgement import find_rules  # noqa: PLC0415  # see above

    return (id for id, rule in find_rules(Registry()).items() if rule.accept)


def _list_addresses(context: typer.Context) -> Iterator[str]:
    """Addresses of blocks and of their instances. A fault of the state or of the configuration does
    not hide what the other has."""
    from contextlib import suppress  # noqa: PLC0415  # only completion needs these modules

    from ...core.errors import KafkaformError  # noqa: PLC0415  # see above
    from ...workflow.configuration.evaluation import Inputs, read_configuration  # noqa: PLC0415  # see above
    from ...workflow.stores import open_store  # noqa: PLC0415  # see above

    _enter_folder(context)
    addresses: list[str] = []
    with suppress(KafkaformError):
        state = open_store(context.params.get("state")).backend.load().state
        rows = state.objects.values() if state is not None else ()
        addresses += [owner for row in rows for owner in row.owners]
    with suppress(KafkaformError):
        desired = read_configuration(Path(), Inputs.read(())).evaluate(offline=True).desired
        addresses += [str(item.address) for item in desired.declared]
    for address in addresses:
        yield address
        # An instance such as a["x"] needs quotes, so its block is offered, too.
        yield address.partition("[")[0]


def _list_objects(context: typer.Context) -> Iterator[str]:
    """Names from the state, and from the newest records of the log."""
    from ...workflow.history import list_recent_names, list_spellings  # noqa: PLC0415  # only completion needs it
    from ...workflow.stores import open_store  # noqa: PLC0415  # see above

    _enter_folder(context)
    store = open_store(context.params.get("state"))
    for identity, addresses in list_recent_names(store).items():
        yield from list_spellings(identity, addresses)


def _list_runs(context: typer.Context) -> Iterator[str]:
    from ...workflow.history import list_recent_runs  # noqa: PLC0415  # only completion needs it
    from ...workflow.stores import open_store  # noqa: PLC0415  # see above

    _enter_folder(context)
    for summary in list_recent_runs(open_store(context.params.get("state"))):
        yield summary.facts.run


def _ask_names(context: typer.Context, complete: Callable[..., Iterable[str]]) -> Iterable[str]:
    """What can follow the words that are typed so far."""
    from ...workflow.configuration.evaluation import Inputs  # noqa: PLC0415  # only completion needs it
    from ...workflow.connection import ConnectionInputs, resolve_configured, resolve_direct  # noqa: PLC0415  # see above

    _enter_folder(context)
    params = context.params
    # typer makes paths of texts only when it calls a command.
    files = [Path(file) for file in params.get("var_file") or ()]
    config = params.get("command_config")

    def ask(listing: Callable[..., Iterable[str]]) -> Iterable[str]:
        inputs = ConnectionInputs(
            params.get("bootstrap_server"),
            Path(config) if config else None,
            tuple(params.get("client_property") or ()),
            params.get("provider"),
            Inputs.read(params.get("var") or (), files),
        )
        direct = inputs.direct
        connection = resolve_direct(inputs, os.environ)[0] if direct else resolve_configured(inputs)
        session = connection.open()
        try:
            return tuple(listing(session))
        finally:
            session.close()

    return complete(_list_words(context), ask)


def _list_words(context: typer.Context) -> Sequence[str]:
    """The words from the group (`describe`, …) on: operands first, then the flags that
    completions look at."""
    group = context.parent.info_name if context.parent is not None else ""
    words = [group or "", context.info_name or ""]
    flags: list[str] = []
    for parameter in context.command.params:
        value: Any = context.params.get(parameter.name or "")
        if parameter.param_type_name == "argument":
            words += value or ()
        elif isinstance(value, str) and parameter.name == "entity_type":
            flags += [parameter.opts[0], value]
    return (*words, *flags)


def _enter_folder(context: typer.Context) -> None:
    """Go to the folder of --chdir: completion does not call the function of that flag."""
    from ...workflow.configuration.places import enter_folder  # noqa: PLC0415  # only completion needs it

    chdir = context.find_root().params.get("chdir")
    if chdir is not None:
        enter_folder(Path(chdir))
