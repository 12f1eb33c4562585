"""Render a page from which foreign text cannot break out.

Every value is written by `inline`, its secrets are masked, and then it is escaped; only our own
markup is not escaped. The page's security policy allows a single script and a single style sheet,
ours, which are named by their hashes. Pages must work without the script.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ..core.secret import mask_secrets
from ..core.text import inline

BASE_STYLE = "base.css.j2"
"""The style sheet that all pages share."""
_POLICY = re.compile(
    r'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">'
)


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


def render_document(
    pages: Environment, template: str, style: str, script: str = "", **values: Any
) -> str:
    """Render a template that extends `document.html.j2`. The same values give the same bytes.

    style, script: the templates of the page's style sheet and of its script, which take no values;
    a page without a script allows none.
    """
    sheet = "".join(pages.get_template(name).render() for name in (BASE_STYLE, style))
    code = pages.get_template(script).render() if script else ""
    page = pages.get_template(template)
    return (
        page.render(
            style=Markup(sheet),
            style_source=_name_source(sheet),
            script=Markup(code),
            script_source=_name_source(code) if code else Markup("'none'"),
            **values,
        )
        + "\n"
    )


def read_policy(document: str) -> str:
    """The security policy of a rendered document, for the header of an answer with it."""
    # No foreign text comes before it, so no text of the page can pass for the policy.
    match = _POLICY.match(document)
    assert match is not None, "the document was not rendered here"
    return match[1]


def _name_source(text: str) -> Markup:
    """How a policy names an inline script or style sheet (Content Security Policy Level 3)."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Markup(f"'sha256-{digest}'")


def _make_harmless(value: Any) -> Any:
    """Every expression of a template passes through this: invisible characters of foreign text
    become visible."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    # Before it is escaped: no list of spellings has all the ways to write a quote in HTML.
    return mask_secrets(inline(value))
