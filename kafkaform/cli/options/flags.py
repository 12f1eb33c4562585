"""Flags that several commands share, spelled as Terraform spells them, the folders that they
choose, and what completes addresses and names of live objects in the user's own shell.

A group of flags can be one parameter of each command. `--var` and `--var-file` keep the order of
the command line, because the later one wins.

A key press must neither hang nor fail: whatever goes wrong within its time limit, nothing is
offered.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from functools import wraps
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from msgspec import Struct
from typer.core import TyperCommand

from ... import workflow
from ...plan.model import Extent
from .. import options

if TYPE_CHECKING:
    from ...workflow.configuration.repository_choice import FolderChoice

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


Var = Annotated[
    list[str], typer.Option("--var", metavar="NAME=VALUE", help="Set an input variable.")
]
VarFile = Annotated[
    list[Path],
    typer.Option("--var-file", metavar="FILE", help="Read input variables from this file."),
]
StateFile = Annotated[
    str | None,
    typer.Option(
        "--state",
        metavar="PLACE",
        help="Where the state is stored: a file, or an s3://, gs:// or az:// URL with bucket and "
        "prefix. Default: KAFKAFORM_STATE, the backend block, or kafkaform.state.json here.",
    ),
]
VerifyLog = Annotated[
    bool,
    typer.Option(
        "--verify-log",
        help="Check the whole audit log. Default: only what came since its last checkpoint.",
    ),
]
Policy = Annotated[
    list[Path],
    typer.Option(
        "--policy",
        metavar="DIR",
        help="Check the plan with the policies of this folder too. Default: KAFKAFORM_POLICY.",
    ),
]
Target = Annotated[
    list[str],
    typer.Option(
        "--target",
        metavar="ADDRESS",
        autocompletion=complete_addresses,
        help="Include only this address or glob and its dependencies.",
    ),
]
Exclude = Annotated[
    list[str],
    typer.Option(
        "--exclude",
        metavar="ADDRESS",
        autocompletion=complete_addresses,
        help="Leave out this address or glob and its dependents.",
    ),
]
Adopt = Annotated[
    list[str],
    typer.Option(
        "--adopt",
        metavar="GLOB",
        autocompletion=complete_addresses,
        help="Take over live objects whose address matches this glob.",
    ),
]
MaxDeletes = Annotated[
    int | None,
    typer.Option("--max-deletes", metavar="N", min=0, help="Allow at most this many deletions."),
]
MaxDataLoss = Annotated[
    int | None,
    typer.Option(
        "--max-data-loss",
        metavar="N",
        min=0,
        help="Allow at most this many objects whose data could be destroyed, besides deletions.",
    ),
]
ImpactFlag = Annotated[
    Extent,
    typer.Option(
        "--impact",
        help="Ask who uses what dangerous changes are about: not at all, for 5 s, or fully.",
    ),
]
SampleFlag = Annotated[
    bool,
    typer.Option(
        "--sample",
        help="Read a record of each partition where order is at risk, to tell whether it has a "
        "key; keep nothing else of it.",
    ),
]
Accept = Annotated[
    list[str],
    typer.Option(
        "--accept",
        metavar="RULE[=ADDRESS]",
        autocompletion=complete_accepted,
        help="Make changes that this rule blocks, all or those of an address or glob.",
    ),
]
AcceptOpenAccess = Annotated[
    bool,
    typer.Option(
        "--accept-open-access",
        help="Allow deleting a resource's last ACL, even if that can open it to everyone "
        "(--accept access-opened).",
    ),
]
AcceptUnprovenAccess = Annotated[
    bool,
    typer.Option(
        "--accept-unproven-access",
        help="Allow ACL changes on a cluster whose decisions differ from what its ACLs say "
        "(--accept access-unproven).",
    ),
]
FailOn = Annotated[
    list[str],
    typer.Option(
        "--fail-on",
        metavar="CONDITION",
        autocompletion=complete_conditions,
        help="Exit with 8 if the plan has any of these: deletes, blocked, drift, danger, caution, "
        "a kind of harm such as data-loss, a finding of a rule, or of a policy as policy/NAME.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON lines for programs.")]
NoColor = Annotated[bool, typer.Option("--no-color", help="Print without colours.")]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        help="Only from then on: 2026-01-31, 2026-01-31T22:00:00Z, or how long ago: 12h, 7d.",
    ),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Only before this time.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Hide progress.")]
LockTimeout = Annotated[
    str,
    typer.Option(
        "--lock-timeout", metavar="TIME", help="Wait this long for the state lock, for example 60s."
    ),
]
AutoApprove = Annotated[
    bool, typer.Option("--auto-approve", "--force", help="Apply without asking for approval.")
]
Untrusted = Annotated[
    bool,
    typer.Option(
        "--untrusted",
        help="Don't trust the configuration: it can't read other files, and connection settings "
        "come only from the environment.",
    ),
]
AllFolders = Annotated[
    bool, typer.Option("--all", help="Every folder of the repository (kafkaform.hcl).")
]
Folders = Annotated[
    list[str],
    typer.Option(
        "--folder",
        metavar="GLOB",
        help="Folders of the repository by path; * is any text without a slash, ** any folders.",
    ),
]
ChangedSince = Annotated[
    str | None,
    typer.Option(
        "--changed-since",
        metavar="REF",
        help="Only folders of the repository that changed since the checkout left this branch or "
        "commit of git.",
    ),
]


class FolderFlags(Struct, frozen=True):
    """Which folders of a repository a command is about; nothing for the current folder alone."""

    all: bool = False
    globs: tuple[str, ...] = ()
    """Of paths."""
    since: str | None = None
    """A branch or commit of git."""

    @property
    def typed(self) -> bool:
        """True if one of the flags was typed."""
        return self != FolderFlags()

    def list_words(self) -> list[str]:
        """The flags as they were typed."""
        words = ["--all"] if self.all else [f"--folder={glob}" for glob in self.globs]
        return [*words, *([] if self.since is None else [f"--changed-since={self.since}"])]


def make_folder_flags(
    all: AllFolders = False, folder: Folders = [], changed_since: ChangedSince = None
) -> FolderFlags:
    """Which folders a command is about."""
    return FolderFlags(all, tuple(folder), changed_since)


# Terraform's users write -input=false, which is the opposite flag here.
Input = Annotated[bool, typer.Option("--input/--no-input", help="Allow interactive prompts.")]


def list_accepted(
    names: Sequence[str], *, open_access: bool, unproven_access: bool
) -> tuple[str, ...]:
    """The rules whose blocks are lifted. names: of --accept; the others are older flags."""
    older = {"access-opened": open_access, "access-unproven": unproven_access}
    return (*names, *(name for name, typed in older.items() if typed and name not in names))


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


chooses_folders = take_flags("chosen", make_folder_flags)
"""Gives a command the flags of `make_folder_flags`, and its `chosen` parameter."""
VAR, VAR_FILE = "var", "var_file"
"""The parameters of the two flags."""


class InOrder(TyperCommand):
    """A command whose `var` gets the texts of --var (str) and the files of --var-file (Path) in the
    order of the command line. Typer itself collects the values of each flag separately."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        words = list(args)  # the parser empties its list
        remaining = super().parse_args(ctx, args)
        if ctx.resilient_parsing or not ctx.params.get(VAR_FILE):
            return remaining
        # The parser knows the order, and typer drops it, so the words are parsed once more.
        _, _, order = self.make_parser(ctx).parse_args(words)
        names = [option.name for option in order if option.name in (VAR, VAR_FILE)]
        # typer makes paths of the second only when it calls the command.
        values = {VAR: iter(ctx.params[VAR] or ()), VAR_FILE: map(Path, ctx.params[VAR_FILE])}
        ctx.params[VAR] = [next(values[name]) for name in names if name is not None]
        ctx.params[VAR_FILE] = []
        return remaining


def choose_folders(chosen: FolderFlags) -> FolderChoice:
    """The chosen folders of the repository that the current folder is in. Raises UsageError, and
    ConfigurationError with all faults of the repository file."""
    choose = workflow.configuration.repository_choice.choose_folders
    return choose(Path(), chosen.all, chosen.globs, chosen.since)
