"""Render what happened: the history of objects as tables, and the newest changes as one line each.

Both are made from the documents that `--json` prints (docs/formats/schemas/history.json).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from ..core.change import PathChange
from ..core.text import Grid, Page
from ..core.value import freeze
from ..core.words import NEUTRAL, Vocabulary, Words
from .attributes import are_long, render_sides
from .change_lines import render_brief
from .text import SENSITIVE, mask_value

Data = Mapping[str, Any]
OUTSIDE = "outside"
UNKNOWN = "unknown"
_HEAD = ("When (UTC)", "Who", "Run", "Commit", "Outcome", "What", "Value")
_NO_CHANGES = "The audit log has no change of it in this time."
_GONE = "The state does not have it any more."
_SHORT_COMMIT = 9
_LONGEST = 200
"""Characters of one value that are shown."""
_NAMED = 3
"""Changes that the row of a run names."""


def make_history_page(document: Data, words: Vocabulary) -> Page:
    """The history of each object, oldest first. words: those of the providers."""
    for number, item in enumerate(document["objects"]):
        if number:
            yield ""
        own_words = words.get(item["instance"], NEUTRAL)
        name = own_words.name_object(item["kind"], item["key"])
        yield f"{item['kind']} {name} on {item['instance']}: {', '.join(item['addresses'])}"
        if not item["recorded"]:
            yield _GONE
        rows = [row for change in item["changes"] for row in _list_rows(change, own_words)]
        if rows:
            yield Grid((_HEAD, *rows))
        else:
            yield _NO_CHANGES


def _list_rows(change: Data, words: Words) -> Iterator[tuple[str, ...]]:
    """One row for each value; one for the object if it has none, or if its name says them all."""
    whole = bool(words.describe_object(change["kind"], change["key"]))
    values = [] if whole and change["action"] != OUTSIDE else change["values"]
    for value in values or [None]:
        text = "" if value is None else render_value_change(change, value, words)
        path = "" if value is None else value["path"] or "object"
        event = change["action"] if not path else f"{change['action']} {path}"
        yield (
            _render_time(change),
            change["actor"] or UNKNOWN,
            change["run"] or "",
            render_commit(change),
            _get_outcome(change),
            event,
            _join(text, *_list_remarks(change)),
        )


def list_change_rows(changes: Iterable[Data], words: Vocabulary) -> list[list[str]]:
    """One row for each change: when, who, run, outcome, action, object, and last what can be long:
    its values, why it failed, and what it undoes."""
    rows = []
    for change in changes:
        own_words = words.get(change["instance"], NEUTRAL)
        name = change["address"] or own_words.name_object(change["kind"], change["key"])
        rows.append(
            [
                _render_time(change),
                change["actor"] or UNKNOWN,
                change["run"] or "",
                _get_outcome(change),
                change["action"],
                name,
                _join(render_values(change, own_words), *_list_remarks(change)),
            ]
        )
    return rows


def make_folders_page(document: Data, words: Vocabulary) -> Page:
    """Changes in the folders of a repository, one row for each. document: of the format of
    `history --all --json`."""
    changes = document["changes"]
    head = ("When (UTC)", "Folder", "Who", "Run", "Outcome", "What", "Object", "Values")
    rows = zip(changes, list_change_rows(changes, words), strict=True)
    yield Grid((head, *((row[0], change["folder"], *row[1:]) for change, row in rows)))


def make_runs_page(runs: Sequence[Data], words: Vocabulary) -> Page:
    """The newest runs, one row for each, with what they changed in a few words."""
    head = ("Run", "When (UTC)", "Who", "Command", "Commit", "End", "Changed")
    yield Grid((head, *(_make_run_row(run, words) for run in runs)))


def _make_run_row(run: Data, words: Vocabulary) -> tuple[str, ...]:
    ends = {True: "complete", False: "not complete", None: "no end"}
    command = f"undo of {run['undoes']}" if run["undoes"] else run["command"]
    rows = list_change_rows(run["changes"], words)
    texts = list(dict.fromkeys(f"{row[4]} {row[5]}" for row in rows))
    suffix = f", and {len(texts) - _NAMED:,} more" if texts[_NAMED:] else ""
    return (
        run["run"],
        render_moment(run["time"]),
        run["actor"],
        command,
        render_commit(run),
        ends[run["complete"]],
        ", ".join(texts[:_NAMED]) + suffix,
    )


def render_values(change: Data, words: Words) -> str:
    """All values of a change on one line; of an object whose sentence says them all, that."""
    if sentence := words.describe_object(change["kind"], change["key"]):
        return sentence
    return ", ".join(
        f"{value['path'] or 'object'} {render_value_change(change, value, words)}"
        for value in change["values"]
    )


def render_value_change(change: Data, value: Data, words: Words) -> str:
    """`7 d → 1 d`; of a new object's value only that one."""
    if value["sensitive"]:
        return SENSITIVE
    attribute, dot, key = str(value["path"]).partition(".")
    path = (attribute, key) if dot else (attribute,) if attribute else ()
    kind = words.kinds.get(change["kind"])
    unit = kind.unit(path) if kind is not None and kind.unit is not None and path else ""
    before, after = freeze(value["before"]), freeze(value["after"])
    item = PathChange(path, before, after, unit=unit)
    if not path or are_long(before, after):
        return render_brief(item)
    creates = change["action"] == "create"
    text = mask_value(after, False, unit) if creates else render_sides(item, whole=True)
    # A whole document would hide every other line; --json has it.
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def render_commit(change: Data) -> str:
    """`4fe1a2b3c #12`: the commit, and its pull request if the pipeline recorded it."""
    request = change["pull_request"]
    words = [(change["commit"] or "")[:_SHORT_COMMIT], f"#{request}" if request else ""]
    return " ".join(filter(None, words))


def _render_time(change: Data) -> str:
    time = render_moment(change["time"])
    if change["action"] != OUTSIDE:
        return time
    return f"{render_moment(change['since'])} – {time}" if change["since"] else f"before {time}"


def render_moment(time: str) -> str:
    """`2026-01-02 03:04:05` for RFC 3339 in UTC."""
    return datetime.fromisoformat(time).strftime("%Y-%m-%d %H:%M:%S")


def _get_outcome(change: Data) -> str:
    return "seen" if change["action"] == OUTSIDE else str(change["outcome"])


def _list_remarks(change: Data) -> Iterator[str]:
    """Why a change failed, and the run that it undoes."""
    if change["error"]:
        yield change["error"]
    if change["undoes"]:
        yield f"undoes {change['undoes']}"


def _join(*texts: str) -> str:
    return "; ".join(filter(None, texts))
