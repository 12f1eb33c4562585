"""Make the report of a build: ask questions of its tables, build a model, render it.

    questions -> rows -> model.FleetReport -> documents (HTML, Markdown, JSON)

In: the tables of a build. Out: a report as text, and rows as text, JSON and CSV. Only `questions`
and `rows` read tables; everything else is pure functions, so the same rows give the same bytes.
Must not know: Spark, command lines.
"""

from typing import TYPE_CHECKING

from ...core.lazy import load_on_use

# They load Arrow; `rows` does without it.
if TYPE_CHECKING:
    from . import documents
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["documents"]
