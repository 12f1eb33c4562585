"""The forms of a plan for its review: a comment in Markdown, a page in HTML.

In: a plan. Out: text that foreign names cannot break out of.

Must not know: HCL, systems, files, or any word that belongs to Kafka alone.
"""

from typing import TYPE_CHECKING

from ...core.lazy import load_on_use

# Only reviews need these forms of a plan, which load templates.
if TYPE_CHECKING:
    from . import comment, folders_comment, html_page
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["comment", "folders_comment", "html_page"]
