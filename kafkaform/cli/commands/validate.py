"""`kafkaform validate`: check the configuration offline, with neither a broker nor a state."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ... import render, workflow
from ...core.diagnostics import Diagnostics, Range, Severity
from ...core.errors import KafkaformError, UsageError
from ...core.resource import Desired
from ...language.declare.folder import Tree
from ...syntax.nodes import Block
from ...workflow import repository
from ...workflow.configuration.evaluation import Configuration, Inputs, read_configuration
from ...workflow.configuration.judgement import find_faults, list_block_rules
from ..options.flags import (
    AllFolders,
    ChangedSince,
    Folders,
    Json,
    NoColor,
    Untrusted,
    Var,
    VarFile,
)
from ..terminal.console import Console

if TYPE_CHECKING:
    from ...workflow.configuration.repository_choice import FolderChoice
    from ...workflow.repository.checking import CheckedFolder

Rules = Annotated[
    bool,
    typer.Option("--rules", help="Only list the rules that judge the declared objects offline."),
]


def validate(
    var: Var = [],
    var_file: VarFile = [],
    untrusted: Untrusted = False,
    rules: Rules = False,
    all: AllFolders = False,
    folder: Folders = [],
    changed_since: ChangedSince = None,
    json: Json = False,
    no_color: NoColor = False,
) -> int:
    """Check the configuration offline.

    Shows the place of each error and what to do about it.
    """
    console, tree = Console.make_standard(no_color=no_color), None
    if all or folder or changed_since:
        if rules:
            raise UsageError("--rules lists the rules of one folder", "Change to that folder.")
        inputs = Inputs.read(var, var_file, untrusted=untrusted)
        return _validate_folders(console, inputs, all, folder, changed_since, json=json)
    if rules:
        inputs = Inputs.read(var, var_file, untrusted=untrusted)
        _show_rules(console, read_configuration(Path(), inputs), json=json)
        return 0
    try:
        inputs = Inputs.read(var, var_file, untrusted=untrusted)
        configuration = read_configuration(Path(), inputs)
        tree, built = configuration.tree, configuration.evaluate(offline=True)
        desired = built.desired
        faults = find_faults(configuration, built)
    except KafkaformError as error:
        # Editors read faults from the JSON, also those of files that cannot be read at all.
        if not json:
            raise
        faults = error.diagnostics
    errors = sum(item.severity is Severity.ERROR for item in faults)
    if json:
        console.write(_render_report(faults, errors, tree))
    else:
        console.show_diagnostics(faults)
        if not errors:
            console.write(_render_sound(desired))
    return min(errors, 1)


def _show_rules(console: Console, configuration: Configuration, *, json: bool) -> None:
    rows = list_block_rules(configuration, configuration.evaluate(offline=True))
    if json:
        console.write(
            render.text.render_json([render.judgement.make_rule_data(rule) for rule in rows])
        )
    else:
        console.write_lines(render.judgement.render_rules(rows))


def _render_sound(desired: Desired) -> str:
    number = len(desired.declared)
    if not number:
        return "The configuration is valid: 0 objects declared. kafkaform manages nothing with it."
    return f"The configuration is valid: {number:,} object{'s' if number != 1 else ''} declared."


def _render_report(faults: Diagnostics, errors: int, tree: Tree | None) -> str:
    """The faults in the shape of `terraform validate -json`, which editors know."""
    # Blocks are sorted and searched, because both they and the faults can be thousands.
    files = {item.range.file for item in faults if item.range is not None}
    blocks = [block for block in _walk_blocks(tree) if block.source.file in files] if tree else []
    positions = sorted(
        (block.range.file, block.range.start_byte, n) for n, block in enumerate(blocks)
    )

    def around(location: Range | None) -> str | None:
        """The header of the top-level block that a place is in: `resource "kafka_topic" "a"`."""
        at = bisect(positions, (location.file, location.start_byte, len(blocks))) if location else 0
        block = blocks[positions[at - 1][2]] if at else None
        if block is None or location is None or not _is_within(block.range, location):
            return None
        return " ".join((block.type, *(f'"{label.text}"' for label in block.labels)))

    return render.text.render_json(
        {
            "format_version": "1.0",
            "valid": not errors,
            "error_count": errors,
            "warning_count": len(faults) - errors,
            "diagnostics": [
                render.diagnostics.make_diagnostic_data(item, around(item.range)) for item in faults
            ],
        }
    )


def _walk_blocks(tree: Tree) -> Iterator[Block]:
    for file in tree.configuration:
        yield from file.body.blocks
    for module in tree.modules.values():
        yield from _walk_blocks(module)


def _is_within(outer: Range, inner: Range) -> bool:
    return outer.file == inner.file and outer.start_byte <= inner.start_byte <= outer.end_byte


# ── many folders ────────────────────────────────────────────────────────────────────────


def _validate_folders(
    console: Console,
    inputs: Inputs,
    all: bool,
    globs: Sequence[str],
    since: str | None,
    *,
    json: bool,
) -> int:
    """Check the chosen folders; return the gravest exit code. Raises UsageError, and
    ConfigurationError for faults of the repository file."""
    outside = inputs.environment if inputs.untrusted else None
    choose_folders = workflow.configuration.repository_choice.choose_folders
    choice = choose_folders(Path(), all, globs, since, outside)
    checked = repository.checking.check_folders(choice.repository, choice.folders, inputs)
    if json:
        console.write(_render_folder_report(checked))
    else:
        for item in checked:
            console.show_diagnostics(item.faults)
        console.write_lines(_render_summary(choice, checked))
    return max((item.code for item in checked), default=0)


def _render_summary(choice: FolderChoice, checked: Sequence[CheckedFolder]) -> Iterator[str]:
    """What failed comes first."""
    failed = [item for item in checked if item.code]
    for item in failed:
        yield f"{item.folder.path}: {render.text.render_count(item.errors, 'error')}"
    sound = [item for item in checked if not item.code]
    name = choice.repository.name
    if not checked:
        folders = render.text.render_count(choice.count, "folder")
        yield f"None of the {folders} of the repository {name} has changed."
        return
    objects = render.text.render_count(sum(item.objects for item in sound), "object")
    if failed:
        folders = render.text.render_count(len(checked), "folder")
        yield f"{len(failed):,} of {folders} of the repository {name} failed."
    if sound:
        verb = "is" if len(sound) == 1 else "are"
        yield f"{render.text.render_count(len(sound), 'folder')} {verb} valid: {objects} declared."


def _render_folder_report(checked: Sequence[CheckedFolder]) -> str:
    """A record for each folder, in the shape of `terraform validate -json`."""
    return render.text.render_json(
        {
            "format_version": "1.0",
            "valid": not any(item.code for item in checked),
            "error_count": sum(item.errors for item in checked),
            "warning_count": sum(len(item.faults) - item.errors for item in checked),
            "folders": [
                {
                    "folder": item.folder.path,
                    "owner": item.folder.owner,
                    "valid": not item.code,
                    "error_count": item.errors,
                    "warning_count": len(item.faults) - item.errors,
                    "objects": item.objects,
                    "diagnostics": [
                        render.diagnostics.make_diagnostic_data(fault, None)
                        for fault in item.faults
                    ],
                }
                for item in checked
            ],
        }
    )
