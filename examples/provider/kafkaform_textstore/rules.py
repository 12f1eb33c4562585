"""What is said about changes: the table of rules, and the functions that judge by it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.resource import Facts, Identity
from kafkaform.core.rule import Judge, Needs, Rule, RuleBook, Scene, Survey
from kafkaform.core.value import EMPTY, FrozenMap

from . import file, link

WRITES = (Action.CREATE, Action.UPDATE, Action.DELETE)
_HEADER = re.compile(r"[a-z0-9-]+")

HEADER_INVALID = Rule(
    id="file-header-invalid",
    title="A header has a name that no header can have",
    level=Level.BLOCK,
    harm=Harm.NONE,
    types=(file.KIND,),
    needs=Needs.BLOCK,
    why="Names of headers are letters, digits and dashes (RFC 9110, section 5.1).",
    example='headers = { "cache control" = "no-cache" }',
    fix="Use letters, digits and dashes.",
    block=Block.IMPOSSIBLE,
)
EMPTIED = Rule(
    id="file-emptied",
    title="All text of a file is removed",
    level=Level.DANGER,
    harm=Harm.DATA_LOSS,
    types=(file.KIND,),
    needs=Needs.OBJECT,
    why="The store keeps no earlier version of a file.",
    example='content = ""   # was a text',
    fix="Save the text first if somebody can still need it.",
    proof="examples/provider/tests/test_textstore_rules.py::test_a_text_is_gone_for_good",
)
LINKED = Rule(
    id="file-linked",
    title="A link leads to a file that is deleted",
    level=Level.BLOCK,
    harm=Harm.NONE,
    types=(file.KIND,),
    needs=Needs.PLAN,
    why="The store refuses to delete a file as long as a link leads to it.",
    example='resource "textstore_file" "notice" { … }   # the block is removed, its link stays',
    fix="Remove the link in the same plan, or let it lead elsewhere.",
    block=Block.IMPOSSIBLE,
    proof="examples/provider/tests/test_textstore_rules.py::test_a_file_is_kept_under_its_link",
)


def _judge_headers(change: Change, _: Facts) -> Iterator[Finding]:
    if change.action not in (Action.CREATE, Action.UPDATE):
        return
    for name in (change.after or EMPTY).get("headers") or ():
        if not _HEADER.fullmatch(name):
            yield HEADER_INVALID.find(f"{name!r} is no name of a header", ("headers", name))


def _judge_content(change: Change, _: Facts) -> Iterator[Finding]:
    before, after = change.before or EMPTY, change.after or EMPTY
    text = before.get("content")
    if change.action is Action.UPDATE and text and not after.get("content"):
        yield EMPTIED.find(
            f"{change.identity.key} loses its text of {len(text):,} characters",
            ("content",),
            figures=FrozenMap(characters=len(text)),
        )


def _survey_links(scene: Scene) -> Iterator[tuple[Identity, Finding]]:
    """Files that are deleted while a link to them stays."""
    deletions = [change for change in scene.changes if deletes_file(change)]
    if not deletions:
        return
    links = {item.identity: item.attributes["target"] for item in scene.sweeps[link.KIND].items}
    for change in scene.changes:
        if change.identity.kind == link.KIND and change.effective and change.action in WRITES:
            links[change.identity] = change.after["target"] if change.after else None
    for change in deletions:
        names = sorted(i.key for i, target in links.items() if target == change.identity.key)
        if names:
            text = f"{', '.join(names)} leads to {change.identity.key}"
            yield change.identity, LINKED.find(text, figures=FrozenMap(links=tuple(names)))


def deletes_file(change: Change) -> bool:
    """True for the deletion of a file that the plan makes."""
    return change.effective and change.action is Action.DELETE and change.identity.kind == file.KIND


BOOK = RuleBook(
    judges=(
        Judge((HEADER_INVALID,), (file.KIND,), Needs.BLOCK, _judge_headers),
        Judge((EMPTIED,), (file.KIND,), Needs.OBJECT, _judge_content),
    ),
    surveys=(Survey((LINKED,), _survey_links),),
)
