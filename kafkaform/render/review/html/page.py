"""Render a plan as one HTML page for its review, which loads nothing."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from ....core.redaction import mask_secrets
from ....core.text.quantity import render_count
from ....core.words import NO_WORDS, Vocabulary
from ....html.document import make_environment, render_document
from ....plan.model import Plan, PlanInstance
from ...diagnostics import render_diagnostics
from ...findings import count_principals, render_rights
from ...lines import name_both, name_object, render_name
from ...outputs import list_output_lines
from ...plan_text import (
    describe_destroy,
    render_last_line,
    render_no_changes,
    render_removal,
)
from ...view import COLUMNS, PlanView, make_view, pending_words
from .rows import RowGroup, list_choices, list_drift, make_rows

NAMED = 10
"""Objects of a danger and principals of a row that are named; the others are folded."""
LINE_WIDTH = 96
"""Columns of an output or an excerpt of the configuration that stands on one line."""

_SHORT = {
    "blocked": "Blocked",
    "kept": "Blocked, stay",
    "delete": "To destroy",
    "loses": "With loss",
    "update": "To change",
    "create": "To create",
    "move": "To move",
    "adopt": "To adopt",
    "import": "To import",
    "forget": "To forget",
    "noted": "Worth knowing",
}
"""Group -> the text of the link to it."""


def render_html(
    plan: Plan, *, words: Vocabulary = NO_WORDS, command: str = "", back: str = ""
) -> str:
    """The page. The same plan gives the same bytes.

    words: of the plan's providers; command: applies exactly this plan, by default
    `kafkaform apply --expect TOKEN`; back: the path of the page that leads here, empty for a page
    that stands alone.
    """
    view = make_view(plan, words)
    groups = make_rows(view)
    pages = make_environment(
        "kafkaform.render.review.html",
        {
            "number": lambda value: f"{value:,}",
            "count": render_count,
            "name": lambda subject: render_name(subject, view.words_of(subject.identity.instance)),
            "both": lambda subject: name_both(subject, view.words_of(subject.identity.instance)),
            "title": lambda subject: name_object(subject, view.words_of(subject.identity.instance)),
            "identity": view.name_identity,
            "known_as": lambda key, instance, kind: view.words_of(instance).name_object(kind, key),
            "objects": lambda entry: view.words_of(entry.lead.identity.instance).name_objects(
                len(entry.changes), entry.lead.identity.kind
            ),
            "rights": lambda rows: render_rights(rows, None),
            "principals": count_principals,
            "output": lambda change: list_output_lines(change, LINE_WIDTH),
            "address": _find_address,
            "since": lambda item: pending_words(item, view.words_of(item.identity.instance)),
            # Excerpts of the configuration keep their lines.
            "block": lambda text: Markup("\n").join(map(mask_secrets, text.split("\n"))),
            "removal": lambda subject: render_removal(
                subject, view.words_of(subject.identity.instance)
            ),
        },
    )
    return render_document(
        pages,
        "plan.html.j2",
        "plan.css.j2",
        "filter.js.j2",
        plan=plan,
        back=back,
        view=view,
        groups=groups,
        title=render_no_changes(view) if view.empty else render_last_line(view),
        anchors=_find_anchors(groups),
        first=NAMED,
        choices=list_choices(groups),
        total=sum(group.total for group in groups),
        warnings=len(view.warnings) + len(view.diagnostics),
        places=tuple(_list_places(view, groups)),
        columns=_choose_columns(view),
        drift=list_drift(view.drift),
        destroys=" ".join(describe_destroy(view)) if view.destroy else "",
        diagnostics=render_diagnostics(view.diagnostics, False, LINE_WIDTH).strip("\n"),
        command=command or f"kafkaform apply --expect {view.token}",
    )


def _list_places(view: PlanView, groups: tuple[RowGroup, ...]) -> Iterator[tuple[str, str, int]]:
    """The sections to which links at the top lead: id, name, how many."""
    yield from ((group.name, _SHORT[group.name], group.total) for group in groups)
    yield from (
        (name, title, number)
        for name, title, number in (
            ("drift", "Changed outside", view.counts.drift),
            ("outputs", "Outputs", len(view.outputs)),
            ("warnings", "Warnings", len(view.warnings) + len(view.diagnostics)),
        )
        if number
    )
    if view.applicable and view.token:
        yield "apply", "Apply", 0


def _find_anchors(groups: tuple[RowGroup, ...]) -> dict[str, str]:
    """Identity of an object -> the id of its row."""
    return {
        str(change.identity): row.id
        for group in groups
        for row in group.rows
        for change in row.entry.changes
    }


def _choose_columns(view: PlanView) -> tuple[tuple[int, str], ...]:
    """The columns of the table of kinds that are not empty, with their places."""
    return tuple(
        (index, name)
        for index, name in enumerate(COLUMNS)
        if any(row.counts[index] for row in view.kinds)
    )


def _find_address(instance: PlanInstance, setting: str) -> str:
    """Where the system is. setting: what the provider calls it."""
    address = instance.display.get(setting)
    return (
        ", ".join(map(str, address if isinstance(address, tuple) else (address,)))
        if address
        else ""
    )
