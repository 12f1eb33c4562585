"""`kafkaform import`: take over live objects: one by its ID, all with generated blocks, or those
that files of another tool declare. `kafkaform export`: write what this folder manages as
configuration of another tool. Both write new files, and never over a file that exists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ...core.errors import AppliedInPart, UsageError
from ...language.declare.folder import FAMILIES, is_read
from ...render.text import inline, render_count, render_table
from ...workflow.adoption.split import import_into_folders
from ...workflow.configuration.evaluation import Configuration, Inputs, read_configuration
from ...workflow.generate.files import GeneratedConfiguration, refuse_existing, write_new_files
from ...workflow.import_all import ImportFilter, import_all
from ...workflow.operations import check_address, import_objects
from ...workflow.stores import parse_duration
from ...workflow.transfer.other_tools import ForeignSource, export, export_login_rights, take_over
from ...workflow.workspace import Workspace, open_workspace
from ..options.flags import (
    Json,
    LockTimeout,
    NoColor,
    Quiet,
    StateFile,
    Var,
    VarFile,
    complete_addresses,
)
from ..options.translation import FOLDERS
from ..terminal.console import Console
from ..terminal.screen import advise, open_screen, show_run

STDOUT = "-"
_NOTHING = {
    "import": "Nothing to import: all that can be seen is recorded or left out.",
    "export": "Nothing to export: nothing is declared or recorded.",
}
_INCOMPLETE = (
    "a listing failed, so there can be more objects than were written",
    "Look at what is not complete, and run it again with the rights that are missing.",
)

Named = Annotated[
    list[str],
    typer.Argument(
        metavar="ADDRESS ID … | PATH…",
        help="The object's block and its ID, for example a topic name, once for each object; with "
        "--from, files and folders of that tool.",
        show_default=False,
        autocompletion=complete_addresses,
    ),
]
All = Annotated[
    bool, typer.Option("--all", help="Write blocks for all live objects that aren't in the state.")
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="TOOL",
        help="Write blocks for what files of this tool declare: see docs/take-over.md.",
    ),
]
Instances = Annotated[
    list[str],
    typer.Option(
        "--provider",
        metavar="INSTANCE",
        help="With --from: the provider block that leads to these objects, if there are several; "
        "once for each provider.",
    ),
]
Only = Annotated[
    list[str],
    typer.Option(
        "--only",
        metavar="NAME",
        help="With --from: only objects of this system, as the files name it; once for each kind "
        "of system, such as a cluster and a registry.",
    ),
]
Match = Annotated[
    list[str], typer.Option("--match", metavar="GLOB", help="With --all: only matching names.")
]
Exclude = Annotated[
    list[str],
    typer.Option("--exclude", metavar="GLOB", help="With --all: without matching names."),
]
Owned = Annotated[
    bool,
    typer.Option(
        "--include-owned",
        help="With --all: also what applications and services make for themselves, such as the "
        "topics of Kafka Streams and Kafka Connect.",
    ),
]
Type = Annotated[
    list[str], typer.Option("--type", metavar="TYPE", help="With --all: only this type.")
]
Out = Annotated[
    str,
    typer.Option(
        "--out",
        metavar="FILE",
        help="With --all or --from: write to this new file; - is stdout.",
    ),
]
Split = Annotated[
    bool,
    typer.Option(
        "--split",
        help="With --all or --from: write a file for each first part of the names, such as the "
        "team, beside --out FILE. --all --split folders: write it into the folders of the "
        "repository whose boundaries fit.",
    ),
]


def export_command(
    tool: Annotated[
        str,
        typer.Argument(metavar="TOOL", help="What to write for: terraform; or acls, with --for."),
    ],
    for_: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--for",
            metavar="folders GLOB",
            help="With acls: the rights that a login of these folders of the repository needs.",
        ),
    ] = None,
    out: Annotated[
        str, typer.Option("--out", metavar="FILE", help="Write to this new file; - is stdout.")
    ] = STDOUT,
    var: Var = [],
    var_file: VarFile = [],
    state: StateFile = None,
    no_color: NoColor = False,
) -> None:
    """Write what this folder manages for another tool.

    It writes a block for each object that is declared or recorded, with its live values, and import
    blocks, so that the other tool finds nothing to change. Secrets become variables. With --out,
    schemas are files beside it.
    """
    console = Console.make_standard(no_color=no_color)
    target = None if out == STDOUT else Path(out)
    if tool == "acls" or for_ is not None:
        show_generated(export_login_rights(tool, for_), target, console, "export")
        return
    workspace = open_workspace(variables=var, variable_files=var_file, state=state)
    configuration = export(workspace, tool, documents=target is not None)
    show_generated(configuration, target, console, "export")


def import_command(
    named: Named = [],
    all: All = False,
    from_: From = None,
    provider: Instances = [],
    only: Only = [],
    match: Match = [],
    exclude: Exclude = [],
    owned: Owned = False,
    type: Type = [],
    out: Out = STDOUT,
    split: Split = False,
    var: Var = [],
    var_file: VarFile = [],
    state: StateFile = None,
    lock_timeout: LockTimeout = "0s",
    json: Json = False,
    no_color: NoColor = False,
    quiet: Quiet = False,
) -> None:
    """Take live objects into the state.

    ADDRESS must be declared. The objects aren't changed; the next plan shows how they differ.

    --all changes nothing. It writes a file with a block for each live object that is neither
    recorded nor declared, and import blocks, so that the next apply takes the objects over. With
    --split folders, each object goes to the folder of the repository whose boundary it fits; what
    fits none or several is listed with the reason, and not written.

    --from does as --all for what files of another tool declare, and connects to nothing. What is
    not taken over is listed, with its place and the reason.
    """
    console = Console.make_standard(no_color=no_color)
    mode = "--all" if all else "--from" if from_ is not None else ""
    chosen = {"--match": match, "--exclude": exclude, "--type": type, "--include-owned": owned}
    _refuse_unfit_flags(chosen, mode, "--all")
    _refuse_unfit_flags({"--provider": provider, "--only": only}, mode, "--from")
    _refuse_stdout(split, out)
    open_space = partial(open_workspace, variables=var, variable_files=var_file, state=state)
    if all and split and named == [FOLDERS]:
        # Each folder has a state of its own.
        _refuse_all_with("--json" if json else "--state" if state else "")
        filters = ImportFilter(tuple(type), tuple(match), tuple(exclude), owned)
        _import_into_folders(filters, out, console, var, var_file)
        return
    if from_ is not None:
        paths = _require_paths(from_, named, other_flags=all or json)
        configuration = read_configuration(Path(), Inputs.read(var, var_file))
        target = _choose_target(configuration, out)
        write = partial(take_over, configuration, ForeignSource(from_, paths, only), provider)
    elif all:
        _refuse_all_with("ADDRESS" if named else "--json" if json else "")
        space = open_space()
        target = _choose_target(space.configuration, out)
        write = partial(import_all, space, types=type, match=match, exclude=exclude, owned=owned)
    else:
        _import_objects(named, open_space, lock_timeout, console, json=json, quiet=quiet)
        return
    generated = write(name=_get_name(target), split=split, documents=target is not None)
    show_generated(generated, target, console)


def _import_objects(
    named: Sequence[str],
    open_space: Callable[[], Workspace],
    lock_timeout: str,
    console: Console,
    *,
    json: bool,
    quiet: bool,
) -> None:
    """Take these objects into the state. Raises UsageError and whatever the import raises."""
    objects = _require_objects(named)
    seconds = parse_duration(lock_timeout, "--lock-timeout")
    with open_screen(console, json=json, quiet=quiet, approved=True) as screen:
        run = partial(import_objects, open_space(), objects, lock_timeout=seconds)
        show_run(screen, partial(run, rerun=advise("import")), outputs=json)


def _refuse_unfit_flags(flags: Mapping[str, object], mode: str, needed_mode: str) -> None:
    """Raises UsageError for a flag of another way to import."""
    for flag, value in flags.items():
        if value and mode != needed_mode:
            raise UsageError(
                f"{flag} goes with {needed_mode}", f"Leave {flag} out, or write {needed_mode}."
            )


def _refuse_stdout(split: bool, out: str) -> None:
    """Raises UsageError for several files without a name."""
    if split and out == STDOUT:
        raise UsageError("--split needs --out", "Name the main file, such as --out live.kf.hcl.")


def _refuse_all_with(argument: str) -> None:
    """Raises UsageError for what was typed beside --all; "" is nothing."""
    if argument:
        raise UsageError(f"--all does not go with {argument}", "Leave one of the two out.")


def _import_into_folders(
    filters: ImportFilter,
    out: str,
    console: Console,
    var: Sequence[str | Path],
    var_file: Sequence[Path],
) -> None:
    """Write a file into each folder that gets objects, and list the other objects. Raises
    UsageError, and AppliedInPart if a listing failed, after what could be read was written."""
    ending = next((e for f in FAMILIES for e in f.configuration if out.endswith(e)), "")
    if Path(out).name != out or not ending:
        raise UsageError(
            f"with --split {FOLDERS}, --out is a file's name in each folder, not {inline(out)}",
            "Write --out imported.kf.hcl.",
        )
    split = import_into_folders(
        types=filters.types,
        match=filters.match,
        name=out,
        variables=var,
        variable_files=var_file,
        exclude=filters.exclude,
        owned=filters.owned,
    )
    texts: dict[Path, str] = {}
    rows: list[list[str]] = []
    for item in split.folders:
        # Beside Terraform's files, a .kf.hcl file would be the only one that is read.
        family = FAMILIES[1 if item.terraform else 0]
        own_ending = ending if ending in family.configuration else family.configuration[0]
        file = f"{item.folder.path}/{out.removesuffix(ending)}{own_ending}"
        texts |= _collect_files(item.generated, split.repository / file)
        rows.append([file, render_count(item.generated.count, "object")])
    write_new_files(texts)
    for gap in (*split.gaps, *split.left_out):
        console.note(inline(gap))
    for item in split.folders:
        for gap in item.generated.gaps:
            console.note(f"{item.folder.path}: {inline(gap)}")
    total = sum(item.generated.count for item in split.folders)
    console.write_lines(render_table(rows))
    if not total:
        console.note(
            "Nothing to import: no object that can be seen fits the boundary of one folder."
        )
    else:
        console.note(
            f"{render_count(total, 'object')} to import into {render_count(len(rows), 'folder')}. "
            "Look at the files, then: kafkaform validate --all, and kafkaform plan --all"
        )
    if not split.complete:
        raise AppliedInPart(*_INCOMPLETE)


def _require_paths(tool: str, paths: Sequence[str], *, other_flags: bool) -> tuple[Path, ...]:
    """The files and folders of --from. others: something was typed that does not go with it."""
    if not paths or other_flags:
        raise UsageError(
            "--from needs files or folders, and goes neither with --all nor with --json",
            f"Write: kafkaform import --from {tool} PATH --out FILE",
        )
    return tuple(map(Path, paths))


def _require_objects(named: Sequence[str]) -> list[tuple[str, str]]:
    """Address and id of each object, checked before anything connects, so that a wrong address is
    reported at once."""
    if not named or len(named) % 2:
        raise UsageError(
            "import needs an ADDRESS and an ID for each object",
            "Or --all, which writes blocks for everything.",
        )
    objects = list(zip(named[::2], named[1::2], strict=True))
    for address, _ in objects:
        check_address(address)
    return objects


def _get_name(target: Path | None) -> str:
    return target.name if target else "generated"


def _choose_target(configuration: Configuration, out: str) -> Path | None:
    """The file to write, None for stdout. Raises UsageError for an existing file, and for a name
    that would make kafkaform read it instead of the folder's own files."""
    if out == STDOUT:
        return None
    path = Path(out)
    refuse_existing(path)
    # Beside Terraform's files, a .kf.hcl file would be the only one that is read from then on.
    inside = path.resolve().parent == configuration.folder.resolve()
    family = FAMILIES[1 if configuration.tree.terraform else 0]
    if inside and is_read(path.name) and not family.select_configuration([path.name]):
        raise UsageError(
            f"{path} would not be read together with the files that are here",
            f"Choose a name that ends in {family.configuration[0]}.",
        )
    return path


def show_generated(
    generated: GeneratedConfiguration,
    target: Path | None,
    console: Console,
    verb: str = "import",
) -> None:
    """Write the files, and say what is missing. Raises AppliedInPart if a listing failed, after it
    has written the blocks of everything that could be read."""
    for gap in generated.gaps:
        console.note(inline(gap))
    if not generated.count:
        console.note(_NOTHING[verb])
    elif target is None:
        console.write(generated.text)
    else:
        write_new_files(_collect_files(generated, target))
    if generated.count:
        count = render_count(generated.count, "object")
        total = len(generated.texts) + len(generated.documents)
        advice = _advise_next(target, total) if verb == "import" else ""
        console.note(f"{count} to {verb}. {advice}".rstrip())
    if not generated.complete:
        raise AppliedInPart(*_INCOMPLETE)


def _has_text(path: Path, text: str) -> bool:
    try:
        return path.is_file() and path.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        # It is something else then, which is never written over.
        return False


def _collect_files(generated: GeneratedConfiguration, target: Path) -> dict[Path, str]:
    """The main file, and the parts beside it, without those that are there already."""
    ending = next((e for f in FAMILIES for e in f.configuration if target.name.endswith(e)), "")
    stem = target.name.removesuffix(ending)
    # With "-": a name that ends in "_override" would change the blocks of the other files.
    names = {prefix: target.with_name(f"{stem}-{prefix}{ending}") for prefix in generated.texts}
    texts = {
        target: generated.text,
        **{names[p]: text for p, text in generated.texts.items()},
        **{target.parent / path: text for path, text in generated.documents.items()},
    }
    documents = {target.parent / path for path in generated.documents}
    # A schema that an earlier import has written already is the same file.
    return {
        path: text
        for path, text in texts.items()
        if path not in documents or not _has_text(path, text)
    }


def _advise_next(target: Path | None, count: int) -> str:
    beside = f" and the {render_count(count, 'file')} beside it" if count else ""
    action = "Save it in this folder" if target is None else f"Look at {target}{beside}"
    return f"{action}, then: kafkaform plan"
