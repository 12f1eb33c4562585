"""Render a plan as text, as JSON, or for a review: as a Markdown comment or an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from ..core.errors import UsageError
from ..core.secret import mask_secrets
from ..plan.model import Plan
from ..render.jsonplan import to_json
from ..render.plan_text import render_plan_text
from ..render.text import Detail, render_json
from .plan_files import read_words
from .planning import render_apply_command

Form = Literal["text", "json", "markdown", "html"]


def render_plan(
    plan: Plan,
    form: Form = "text",
    *,
    colour: bool = False,
    width: int = 100,
    detail: Detail = "grouped",
    approval: bool = True,
    whole: Path | None = None,
    name: str = "",
) -> str:
    """Render a plan for people or programs; every line is safe to print.

    form: `text` as on a terminal, `json` in the shape of Terraform's plan, `markdown` for a review
    comment, `html` for a page that loads nothing. colour, width (columns), detail and approval
    apply to text only. detail: `concise` for one line per change, `grouped` for equal changes
    together, `full` for each change by itself. approval: show the token, for those who apply the
    plan later. whole: a file that has the whole plan; a shortened comment gives its name without
    the folder, which exists only where the plan was made. name: of the folder or environment, for
    the heading of a comment. Raises UsageError for another form.
    """
    if form not in get_args(Form):
        raise UsageError(
            f"there is no form {form!r} of a plan", f"Use one of {', '.join(get_args(Form))}."
        )
    if form == "json":
        return mask_secrets(render_json(to_json(plan)))
    if form == "markdown":
        from ..render.review.comment import render_markdown  # noqa: PLC0415  # for startup

        return mask_secrets(
            render_markdown(
                plan,
                words=read_words(plan),
                command=render_apply_command(plan),
                whole=whole.name if whole is not None else "",
                name=name,
            )
        )
    if form == "html":
        from ..render.review.html_page import render_html  # noqa: PLC0415  # for startup

        # Secrets are masked before the page escapes them.
        return render_html(plan, words=read_words(plan), command=render_apply_command(plan))
    return mask_secrets(
        render_plan_text(
            plan,
            words=read_words(plan),
            colour=colour,
            width=width,
            detail=detail,
            approval=approval,
        )
    )
