"""Names, values and principals that want to be more than text, through every command that shows
them, on a real broker that holds them."""

from __future__ import annotations

import json
import os
import random

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from kafkaform.core.change import Action
from kafkaform.plan.model import Plan
from kafkaform.render.plan_text import render_plan_text
from kafkaform.render.review.comment import render_markdown

from ...kit.commands.folder import Folder
from ...unit.render.hostile import HOSTILE
from ...unit.render.plans import change, plan
from ...unit.render.test_hostile import OWN_HTML, PARSER, assert_harmless, structure

COMMANDS_OF_PIPELINES = (
    *("::add-mask::x", "::error file=a,line=1::x", "::stop-commands::x", "::set-output name=x::y"),
    *("::set-env name=PATH::/tmp", "  ::warning::x", "##vso[task.setvariable variable=x]y"),
    *("##vso[task.logissue type=error]x", "##[error]x", "##[group]x", "##[command]x"),
    *("##teamcity[message text='x']", "section_start:1:x\r\x1b[0Kx", "section_end:1:x\r\x1b[0K"),
    *("x\n::add-mask::y", "x\r::add-mask::y", "x\u2028::add-mask::y", "x\x85::error::y"),
    *("travis_fold:start:x\r\x1b[0K", "\x1b]8;;http://evil.example\x07x\x1b]8;;\x07"),
)
UNIQUE = dict.fromkeys((*HOSTILE, *COMMANDS_OF_PIPELINES))
ALL_TEXTS = [text for text in UNIQUE if "\ud800" not in text]
TEXTS = ALL_TEXTS[:: 1 if "KAFKAFORM_LONG" in os.environ else 3]


def assert_inert(shown: str) -> None:
    """No line can be taken for a command of a build log, no character moves, hides or turns."""
    assert_harmless(shown)
    for line in shown.splitlines():
        assert not line.startswith(("section_start:", "section_end:", "travis_fold:"))
        assert "\x1b" not in line and "\r" not in line


# ── commands ────────────────────────────────────────────────────────────────────────────

SHOWING = (
    *("plan", "plan --concise", "plan --json", "state list", "output", "output --json", "graph"),
    *("show", "show p.json", "show p.json --json", "show p.json --markdown", "show p.json --html"),
    *("describe quotas", "describe acls", "describe acls --json", "explain access"),
    *("import --all", "audit show", "audit verify", "lock show", "providers"),
    *("validate", "validate --json", "fmt --check"),
    "explain quota --user ci --client-id x",
)
"""Every command that shows what is in a configuration, a plan, a state, a log or a cluster."""


def configured(folder: Folder) -> None:
    """An ACL, a quota, an output and labels for each hostile text."""
    blocks: dict[str, dict[str, object]] = {"kafka_quota": {}, "kafka_acl": {}}
    outputs: dict[str, object] = {}
    for number, text in enumerate(TEXTS):
        said = text.replace("${", "$${").replace("%{", "%%{")
        blocks["kafka_quota"][f"q{number}"] = {
            "client_id": folder.prefix + said,
            "config": {"producer_byte_rate": 1000 + number},
            "owner": said,
            "labels": {"team": said},
        }
        blocks["kafka_acl"][f"a{number}"] = {
            "resource_name": folder.prefix + said,
            "resource_type": "Group",
            "acl_principal": f"User:{said}",
            "acl_host": "*",
            "acl_operation": "Read",
            "acl_permission_type": "Allow",
        }
        outputs[f"o{number}"] = {"value": said}
    folder.write("hostile.kf.json", json.dumps({"resource": blocks, "output": outputs}))


def test_every_command(folder: Folder) -> None:
    """The whole life of such objects: planned, reviewed, applied, listed, described, imported,
    explained and destroyed, and not one line of any output obeys them."""
    configured(folder)
    accept = "--accept-unproven-access"
    for words in (
        ["plan", "--out=p.json", "--comment=c.md"],
        ["apply", "--auto-approve", accept],
        *(words.split(" ") for words in SHOWING),
        ["destroy", "--auto-approve", "--confirm", folder.broker.cluster_id, accept],
    ):
        said = folder.run(*words)
        assert "failed unexpectedly" not in said.text, (words, said.text)
        assert_inert(said.out)
        assert_inert(said.err)
        assert said.code == 0 or words[0] in ("fmt", "explain", "destroy"), (words, said.text)
    assert_inert((folder.path / "c.md").read_text(encoding="utf-8"))


# ── comments ────────────────────────────────────────────────────────────────────────────

PIECES = (
    *("`", "``", "```", "|", "<", ">", "&lt;", "<details>", "</summary>", "<!--", "-->", "@team"),
    *("[a](http://e)", "![a](http://e)", "<script>", "\n", "\n\n", "\n# h\n", "\n- x", "\n> q"),
    *("\\", "\\`", "\\|", "~~~", "http://e", "\u202e", "\u200b", "\x1b[1m", "&#96;", "a", " "),
    *("#1", "***", "_", "b"),
)


def names(number: int) -> list[str]:
    """Names made of whatever means something in Markdown and HTML."""
    chance = random.Random(12)
    return [
        f"{n}" + "".join(chance.choices(PIECES, k=chance.randrange(1, 9))) for n in range(number)
    ]


def of(texts: list[str]) -> Plan:
    """A plan with one change for each name."""
    return plan(
        *(change(f'kafka_topic.t["{text}"]', text, Action.CREATE) for text in texts),
    )


def words(tokens: list[Token]) -> str:
    """What a reader sees as text or code."""
    shown = ""
    for token in tokens:
        if token.type in ("text", "code_inline", "fence", "code_block"):
            shown += token.content
        shown += words(token.children or [])
    return shown


@pytest.mark.parametrize("start", range(0, 500, 50))
def test_five_hundred_names_are_only_text(start: int) -> None:
    """A comment about such names has the structure that it has for as many plain names, and no
    HTML but our own. Fifty at a time, since a comment is cut where it grows too long."""
    some = names(500)[start : start + 50]
    shape = structure(PARSER.parse(render_markdown(of([f"{n}plain" for n in range(len(some))]))))
    comment = render_markdown(of(some))
    assert_inert(comment)
    tokens = PARSER.parse(comment)
    assert structure(tokens) == shape
    for token in tokens:
        if token.type == "html_block":
            assert all(OWN_HTML.fullmatch(line) for line in token.content.splitlines())


# ── templates ───────────────────────────────────────────────────────────────────────────

EXPRESSIONS = (
    *("7*7", "7 * 7", "config", "self", "self.__class__", "''.__class__", "''.__class__.__mro__"),
    *("''.__class__.__mro__[1].__subclasses__()", "cycler.__init__.__globals__.os.popen('id')"),
    *("lipsum.__globals__", "request.application", "range(9999999)|list", "x|attr('__class__')"),
    *(
        "plan",
        "plan.changes",
        "view",
        "loop",
        "namespace()",
        "''|join",
        "'a'*9999",
        "joiner.__init__",
    ),
)
JINJA = (
    *(f"{{{{{one}}}}}" for one in EXPRESSIONS),
    *(f"{{{{ {one} }}}}" for one in EXPRESSIONS),
    *(f"{{{{-{one}-}}}}" for one in EXPRESSIONS[:8]),
    *("{% raw %}", "{% endraw %}", "{% include 'x' %}", "{% import 'os' as os %}", "{# x #}"),
    *("{% for x in range(9) %}z{% endfor %}", "{% if true %}z{% endif %}", "{% extends 'x' %}"),
    *("{% block x %}", "{%- set x = 1 -%}", "{{'{{7*7}}'}}", "}}{{7*7}}{{", "%}{{7*7}}{%"),
    *("{{7*7}}|safe", "{{ '<b>'|safe }}", "# for x in y", "## 7*7", "${7*7}", "<%= 7*7 %>"),
)


GROUP = 10
"""So many names of equal changes are shown; more of them are counted."""


@pytest.mark.parametrize("start", range(0, len(JINJA), GROUP))
def test_templates_in_names_stay_text(start: int) -> None:
    """Each expression of the template language is shown as it was written, in a comment as on a
    terminal, and none is computed."""
    assert len(JINJA) >= 60
    assert_not_computed(list(JINJA[start : start + GROUP]))


def assert_not_computed(texts: list[str]) -> None:
    some = [text.replace("##", "#") for text in texts]  # which is a command of build logs
    subject = of(some)
    shown = words(MarkdownIt("commonmark").enable("table").parse(render_markdown(subject)))
    terminal = render_plan_text(subject, colour=False)
    for text in some:
        assert text in shown and text.replace("\\", "\\\\") in terminal
    assert "49" not in shown and "<class" not in shown
