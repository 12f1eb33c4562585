"""The page of `describe groups`."""

from __future__ import annotations

from kafkaform.core.value import FrozenMap
from kafkaform.provider.page import Cells, Grid, Page

from ..cells import NOTHING, cell, count
from .end_offsets import PROBLEMS
from .gap_lines import render_gaps, render_problem

_TOPICS_SHOWN = 3
"""Topics that a row of the list names, before it counts them."""
_HEAD = ("Group", "Type", "State", "Members", "Coordinator", "Lag", "Topics")
_MEMBER_HEAD = ("Client", "Host", "Instance", "Member", "Reads")


def groups_page(document: FrozenMap) -> Page:
    """The page of the document `groups`."""
    groups = document["groups"]
    if groups:
        yield Grid((_HEAD, *map(_list_cells, groups)), frozenset({3, 4, 5}))
    details = [line for group in groups for line in _render_details(group)]
    yield from (*details, "") if details else ()
    yield f"{count(len(groups), 'group')}."
    for group in groups:
        if group["error"] is not None:
            yield f"{group['name']}: {render_problem(group['error'])}"
    yield from render_gaps(document)


def _list_cells(group: FrozenMap) -> Cells:
    return (
        group["name"],
        cell(group["type"]),
        cell(group["state"]),
        cell(group["member_count"]),
        cell(group["coordinator"]),
        _render_lag(group),
        _render_topics(group["topics"]),
    )


def _render_lag(group: FrozenMap) -> str:
    if group["lag"] is None:
        return NOTHING
    return f"{'' if group['lag_complete'] else 'at least '}{group['lag']:,}"


def _render_topics(topics: tuple[str, ...] | None) -> str:
    if topics is None or len(topics) <= _TOPICS_SHOWN:
        return cell(topics)
    return f"{cell(topics[:_TOPICS_SHOWN])} and {len(topics) - _TOPICS_SHOWN:,} more"


def _render_details(group: FrozenMap) -> Page:
    members, offsets = group.get("members"), group.get("offsets")
    if members is not None:
        yield ""
        assignor = f" (assignor {group['assignor']})" if group["assignor"] else ""
        yield f"Members of {group['name']}{assignor}"
        if members:
            yield Grid((_MEMBER_HEAD, *map(_member_cells, members)))
        else:
            yield "  It has no members."
    if offsets is not None:
        yield ""
        yield f"Offsets of {group['name']}"
        if offsets:
            yield _make_offset_grid(offsets)
        else:
            yield "  There are none that we can see."


def _member_cells(member: FrozenMap) -> Cells:
    return (
        cell(member["client_id"]),
        cell(member["host"]),
        cell(member["instance_id"]),
        cell(member["member_id"]),
        _render_reads(member),
    )


def _render_reads(member: FrozenMap) -> str:
    """What the member reads: `orders 0,1`, or the tasks of a streams application."""
    if "tasks" in member:
        sources = [f"{role} {cell(tasks)}" for role, tasks in member["tasks"].items() if tasks]
    elif member["assignment"] is None:
        return NOTHING
    else:
        sources = [f"{row['topic']} {cell(row['partitions'])}" for row in member["assignment"]]
    return "; ".join(sources) or "nothing"


def _make_offset_grid(offsets: tuple[FrozenMap, ...]) -> Grid:
    """The offsets; the column of problems only if there are any."""
    shared = "start_offset" in offsets[0]
    sick = any(row["problem"] for row in offsets)
    head = ("Topic", "Partition", "Start" if shared else "Committed", "End", "Lag", "Epoch")
    columns = (*(() if shared else ("Client",)), *(("Problem",) if sick else ()))
    rows = [
        (
            row["topic"],
            cell(row["partition"]),
            cell(row["start_offset" if shared else "committed_offset"]),
            cell(row["end_offset"]),
            cell(row["lag"]),
            cell(row["leader_epoch"]),
            *(() if shared else (cell(row["client_id"]),)),
            *((PROBLEMS.get(row["problem"] or "", ""),) if sick else ()),
        )
        for row in offsets
    ]
    return Grid(((*head, *columns), *rows), frozenset({1, 2, 3, 4, 5}))
