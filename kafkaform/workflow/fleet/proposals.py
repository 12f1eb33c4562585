"""Write what a person reviews before an unused topic goes on: a patch of each configuration folder,
and import blocks for topics that no state has. Nothing is changed in place, and nothing is sent.

A patch says `lifecycle { park = "7d" }` in the block of a topic, and later replaces the block by a
`removed` block. Both are tried out on the folder first: a change that would leave the configuration
with a fault, such as a reference to a block that is gone, is not proposed.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from ...core.address import Address, parse_address
from ...core.diagnostics import Diagnostic, has_errors
from ...core.errors import ConfigurationError, KafkaformError, UsageError
from ...core.storage import make_storage_error
from ...fleet.answers.unused import Proposal, UnusedTopic
from ...language.declare.folder import Tree
from ...render.review.comment_rows import render_code
from ...render.text import inline, render_count
from ...syntax.nodes import Block, Lit
from ...syntax.write import Code, NewBlock, format_text, write_blocks
from ..configuration.files import Buffers
from ..plan_documents import save_file
from .entries import StateEntry
from .states import describe_error, open_configuration

PARK = "7d"
"""How long a proposal parks a topic."""
OVERVIEW = "README.md"
_RESOURCE, _TYPE = "resource", "kafka_topic"
_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


class CannotPropose(Exception):
    """The change cannot be written. Its text says why."""


class TextEdit(Struct, frozen=True):
    """A part of a file, and what replaces it."""

    file: str
    start: int
    end: int
    text: str


class ProposedFile(Struct, frozen=True):
    """A file to review."""

    name: str
    text: str
    topics: tuple[UnusedTopic, ...]
    usage: str
    """What to do with it."""


class Proposals(Struct, frozen=True):
    """All files to review, and the topics without one."""

    files: tuple[ProposedFile, ...]
    skipped: tuple[tuple[UnusedTopic, str], ...]
    """Each with the reason."""


def make_proposals(topics: Iterable[UnusedTopic], states: Iterable[StateEntry]) -> Proposals:
    """Write the changes that are due. states: those of fleet.hcl."""
    entries = {entry.name: entry for entry in states}
    by_state: dict[str, list[UnusedTopic]] = defaultdict(list)
    by_cluster: dict[str, list[UnusedTopic]] = defaultdict(list)
    skipped: list[tuple[UnusedTopic, str]] = []
    for topic in topics:
        if topic.proposal is Proposal.IMPORT:
            by_cluster[topic.cluster].append(topic)
        elif topic.proposal is not None and topic.state in entries:
            by_state[topic.state or ""].append(topic)
        elif topic.proposal is not None:
            skipped.append((topic, "fleet.hcl has no state with its lineage"))
    files = [_make_import_file(name, group) for name, group in sorted(by_cluster.items())]
    for state, group in sorted(by_state.items()):
        patch, problems = _make_patch(entries[state], group)
        files.extend(patch)
        skipped.extend(problems)
    return Proposals(tuple(files), tuple(skipped))


def save_proposals(folder: Path, proposals: Proposals, now: datetime) -> tuple[Path, ...]:
    """Write the files and an overview into a new folder; return their paths. Raises UsageError: the
    folder has files; StorageError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError(
                f"--propose {folder}: the folder has files", "Name a folder that does not exist."
            )
    except OSError as error:
        raise make_storage_error("cannot write the proposals", folder, error) from None
    texts = {file.name: file.text for file in proposals.files}
    texts[OVERVIEW] = render_overview(proposals, now)
    for name, text in texts.items():
        save_file(folder / name, text.encode(), private=False)
    return tuple(folder / name for name in texts)


# ── patches ─────────────────────────────────────────────────────────────────────────────


def _make_patch(
    entry: StateEntry, topics: Sequence[UnusedTopic]
) -> tuple[list[ProposedFile], list[tuple[UnusedTopic, str]]]:
    """Return the patch of a folder, none if nothing of it can be written, and what is skipped."""
    if entry.folder is None:
        return [], [(topic, f"state {entry.name} has no folder in fleet.hcl") for topic in topics]
    try:
        tree = open_configuration(entry, entry.folder).tree
        if has_errors(tree.diagnostics):
            # An edit of a text that does not parse could land anywhere.
            raise ConfigurationError("it has faults", diagnostics=tree.diagnostics)
        old_faults = _list_faults(entry, entry.folder, {})
    except (KafkaformError, OSError) as error:
        cause = f"the configuration cannot be read: {describe_error(error)}"
        return [], [(topic, cause) for topic in topics]
    texts = {file.source.file: file.source.text for file in tree.configuration}
    edits: list[TextEdit] = []
    written: list[UnusedTopic] = []
    skipped: list[tuple[UnusedTopic, str]] = []
    for topic in topics:
        try:
            tried = [*edits, *_edit_block(tree, topic)]
            _try_edits(entry, entry.folder, texts, tried, old_faults)
        except CannotPropose as problem:
            skipped.append((topic, str(problem)))
            continue
        edits = tried
        written.append(topic)
    if not written:
        return [], skipped
    changed = apply_edits(texts, edits)
    lines = [
        line
        for name, text in sorted(changed.items())
        for line in _render_difference(name, texts[name], text)
    ]
    name = f"{_UNSAFE.sub('-', entry.name).strip('-')}.patch"
    usage = (
        f"`patch -p1 -d {inline(str(entry.folder))} < {name}`, then review the plan of the folder"
    )
    return [ProposedFile(name, "".join(lines), tuple(written), usage)], skipped


def _edit_block(tree: Tree, topic: UnusedTopic) -> Iterator[TextEdit]:
    """Yield the edits of the block of a topic. Raises CannotPropose."""
    address = parse_address(topic.address or "")
    if address.module:
        raise CannotPropose(f"{address} is in a module: change the module or its call")
    if address.key is not None:
        raise CannotPropose(
            f"the block declares several objects: take {address} out of its count or for_each"
        )
    block = _find_block(tree, address)
    if topic.proposal is Proposal.REMOVE:
        yield _replace_block(block, address)
        return
    lifecycle = next(iter(block.list_blocks("lifecycle")), None)
    if lifecycle is None:
        yield from _insert_line(block, f'lifecycle {{\n    park = "{PARK}"\n  }}', "  ")
        return
    if lifecycle.source is not block.source:
        raise CannotPropose(f"an override file has the lifecycle of {address}: write park there")
    if lifecycle.get_argument("park") is not None:
        raise CannotPropose(
            f"the block of {address} says park: apply it, and take a snapshot after that"
        )
    protection = lifecycle.get_argument("prevent_destroy")
    if protection is not None and not (isinstance(protection, Lit) and protection.value is False):
        raise CannotPropose(f"prevent_destroy protects {address}: set it to false first")
    yield from _insert_line(lifecycle, f'park = "{PARK}"', "    ")


def _find_block(tree: Tree, address: Address) -> Block:
    labels = (address.type, address.name)
    for file in tree.configuration:
        for block in file.body.blocks:
            if block.type == _RESOURCE and tuple(label.text for label in block.labels) == labels:
                if block.source.file.endswith(".json"):
                    raise CannotPropose(f"{address} is in {block.source.file}: edit it by hand")
                return block
    raise CannotPropose(f"no file of the folder declares {address}")


def _insert_line(block: Block, line: str, indent: str) -> Iterator[TextEdit]:
    """Yield the edits that add a line at the end of a block."""
    text, end = block.source.text, block.body.end - 1
    is_closed_on_own_line = not text[text.rfind("\n", 0, end) + 1 : end].strip()
    if is_closed_on_own_line:
        start = text.rfind("\n", 0, end) + 1
        yield TextEdit(block.source.file, start, start, f"{indent}{line}\n")
    else:
        # A block on one line: its only argument has to leave the line of the braces.
        start = block.body.start + 1
        yield TextEdit(block.source.file, start, start, f"\n{indent}{line}\n")
        if text[start:end].strip():
            yield TextEdit(block.source.file, end, end, "\n")


def _replace_block(block: Block, address: Address) -> TextEdit:
    text, line_start = block.source.text, block.source.text.rfind("\n", 0, block.start) + 1
    removed = write_blocks(
        [
            NewBlock(
                "removed",
                (),
                {"from": Code(str(address))},
                (NewBlock("lifecycle", (), {"destroy": True}),),
            )
        ]
    )
    start = line_start if not text[line_start : block.start].strip() else block.start
    return TextEdit(block.source.file, start, block.end, removed.rstrip("\n"))


def apply_edits(texts: Mapping[str, str], edits: Iterable[TextEdit]) -> dict[str, str]:
    """Return file -> its text after the edits. A file in the standard layout stays in it."""
    changed: dict[str, str] = {}
    # From the end of each file, so that the places of the other edits stay true.
    for edit in sorted(edits, key=lambda edit: (edit.file, edit.start, edit.end), reverse=True):
        text = changed.get(edit.file, texts[edit.file])
        changed[edit.file] = text[: edit.start] + edit.text + text[edit.end :]
    return {
        name: format_text(text) if format_text(texts[name]) == texts[name] else text
        for name, text in changed.items()
    }


def _try_edits(
    entry: StateEntry,
    folder: Path,
    texts: Mapping[str, str],
    edits: Iterable[TextEdit],
    old_faults: frozenset[str],
) -> None:
    """Raises CannotPropose if the folder would have a fault that it does not have now."""
    try:
        new_faults = _list_faults(entry, folder, apply_edits(texts, edits)) - old_faults
    except (KafkaformError, OSError) as error:
        new_faults = frozenset({describe_error(error)})
    if new_faults:
        raise CannotPropose(f"the configuration would have a fault: {min(new_faults)}")


def _list_faults(entry: StateEntry, folder: Path, texts: Mapping[str, str]) -> frozenset[str]:
    """Return the errors of the folder with these texts in place of its files."""
    place = folder.absolute()
    buffers = Buffers({place / name: text.encode() for name, text in texts.items()})
    configuration = open_configuration(entry, folder, buffers)
    desired = configuration.evaluate(offline=True).desired
    return frozenset(_render_fault(fault) for fault in desired.diagnostics if has_errors((fault,)))


def _render_fault(fault: Diagnostic) -> str:
    # Without the line, which an edit above it changes.
    return f"{fault.range.file}: {fault.summary}" if fault.range else fault.summary


def _render_difference(name: str, before: str, after: str) -> Iterator[str]:
    # Not `splitlines`: it also splits at characters that a string of HCL can contain.
    old, new = _LINE.findall(before), _LINE.findall(after)
    for line in difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


# ── imports ─────────────────────────────────────────────────────────────────────────────


def _make_import_file(cluster: str, topics: Sequence[UnusedTopic]) -> ProposedFile:
    """Blocks that take topics over, which a state must have before it can delete them."""
    blocks: list[NewBlock] = []
    names: set[str] = set()
    for topic in topics:
        name = _choose_name(topic.topic, names)
        names.add(name)
        blocks.append(
            NewBlock("import", (), {"to": Code(f"{_TYPE}.{name}"), "id": topic.topic}),
        )
        # The block says nothing of configs, and a later plan would take those away that are set.
        lifecycle = NewBlock("lifecycle", (), {"ignore_changes": Code("all"), "park": PARK})
        blocks.append(NewBlock(_RESOURCE, (_TYPE, name), {"name": topic.topic}, (lifecycle,)))
    usage = (
        f"copy it into a folder whose provider leads to {inline(cluster)}, and review its plan: it "
        "takes the topics over and changes nothing of them. Their removal is proposed after that"
    )
    file_name = f"import-{_UNSAFE.sub('-', cluster).strip('-')}.kf.hcl"
    return ProposedFile(file_name, write_blocks(blocks), tuple(topics), usage)


def _choose_name(topic: str, taken: set[str]) -> str:
    base = _UNSAFE.sub("_", topic).strip("_")
    base = base if base[:1].isalpha() else f"topic_{base}"
    names = (base, *(f"{base}_{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


# ── the overview ────────────────────────────────────────────────────────────────────────

_CHANGES: Mapping[Proposal | None, str] = {
    Proposal.IMPORT: "is taken over by a state",
    Proposal.PARK: f'gets `lifecycle {{ park = "{PARK}" }}`, which changes nothing on the cluster',
    Proposal.REMOVE: "loses its block: the apply takes the access away if its state says `park`, "
    "and deletes it after that time; else it deletes it at once",
}


def render_overview(proposals: Proposals, now: datetime) -> str:
    """Return the Markdown that says what each file is for, and why."""
    lines = [
        f"# Unused topics: changes to review, {now:%Y-%m-%d %H:%M} UTC",
        "",
        "Each topic is still unused in the current build, and the time of its owner to object is "
        "over. Nothing was changed yet.",
    ]
    for file in proposals.files:
        lines += ["", f"## {file.name}", "", f"{file.usage}.", ""]
        for topic in file.topics:
            name = render_code(f"{topic.cluster}/{topic.topic}")
            evidence = inline("; ".join(topic.evidence))
            lines.append(f"- {name} {_CHANGES[topic.proposal]}. Why: {evidence}.")
    if proposals.skipped:
        lines += ["", f"## Without a change: {render_count(len(proposals.skipped), 'topic')}", ""]
        for topic, reason in proposals.skipped:
            name = render_code(f"{topic.cluster}/{topic.topic}")
            lines.append(f"- {name}: {inline(reason)}.")
    return "\n".join(lines) + "\n"
