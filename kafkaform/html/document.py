"""Render a page from which foreign text cannot break out.

Every value is written by `inline`, its secrets are masked, and then it is escaped; only our own
markup is not escaped. The page's security policy allows a single script, ours, which is named by
its hash. Pages must work without it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ..core.redaction import mask_secrets
from ..core.text.foreign import inline


def make_environment(package: str, filters: Mapping[str, Callable[..., Any]]) -> Environment:
    """The templates of a package, which can extend `document.html.j2` and use `filters`."""
    pages = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("kafkaform.html")]),
        autoescape=True,
        # A misspelt name in a template must fail a test instead of leaving a gap in a page.
        undefined=StrictUndefined,
        finalize=_make_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters |= filters
    return pages


def render_document(pages: Environment, template: str, script: str, **values: Any) -> str:
    """Render a template that extends `document.html.j2`. The same values give the same bytes.

    script: the template of the page's script, which takes no values.
    """
    code = pages.get_template(script).render()
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    page = pages.get_template(template)
    return page.render(script=Markup(code), script_hash=digest, **values) + "\n"


def _make_harmless(value: Any) -> Any:
    """Every expression of a template passes through this: invisible characters of foreign text
    become visible."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    # Before it is escaped: no list of spellings has all the ways to write a quote in HTML.
    return mask_secrets(inline(value))
