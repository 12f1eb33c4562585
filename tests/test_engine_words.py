"""The engine has no word of Kafka's: another provider's users must never read one, and whoever
reads the engine need not know Kafka."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ENGINE = Path(__file__).resolve().parent.parent / "kafkaform"
PACKAGES = (
    "core",
    "syntax",
    "language",
    "provider",
    "state",
    "audit",
    "plan",
    "apply",
    "render",
    "editor",
)

WORDS = re.compile(
    r"kafka|broker|cluster|controller|kraft|zookeeper|topic|bootstrap|replica|partition|throttl"
    r"|\bacls?\b|scram|isr\b",
    re.IGNORECASE,
)

ALLOWED = {
    r"kafkaform": "the product's own name",
    r"\.r?partition\(": "a method of Python's strings",
    r"grapheme cluster": "Unicode's word for what people take for one character",
    r"kafka_topic\b": "the type of the examples in docstrings and advice",
    r"`kafka`|`kafka\.[A-Za-z]+`|`…/kafka`": "an instance of the built-in provider, in an example",
    r"(provider =|Write|kafka =|\{ kafka =) kafka\.eu": "the same",
    r'"kafka = …"': "the same",
    r"^BUILT_IN: .*": "the provider that comes with the package",
    r"[Mm]ust not know: .*": "what a package must not know has to be named",
    r'find_state_home\(\) / "clusters"': "a folder whose name is older than other providers",
    r"or any word that belongs to Kafka alone": "the same",
    r'^SETTING = "throttle"': "the log's word, whose format is older than other providers",
    r"Kafka's `broker\.session\.timeout\.ms`": "where a number of the engine's comes from",
}
"""Pattern in a line -> why it may stand there."""

FILES = {
    "core/landing.py": "the format of landing files: a fleet has clusters, topics and groups",
    "core/diagnostics.py": "words of other tools, which are answered only with words that exist",
}
"""File -> why any word may stand in it."""

CLUSTER_BLOCKS = tuple(
    f"editor/{name}.py"
    for name in ("completion", "edits", "hover", "json_schema", "members", "symbols")
)
"""What knows the `cluster` blocks of a repository file."""

WORKFLOW = {
    "workflow/adoption/": "writes the file of a repository, which says `cluster`",
    "workflow/fleet/": "the fleet is about Kafka clusters",
    "workflow/transfer/other_tools.py": "writes for `acls`, by the clusters of the file",
    "workflow/connection.py": "connects by a bootstrap server and properties of the Java client",
    "workflow/audit_log.py": "copies the log to a topic",
    "workflow/history.py": "finds objects by the words of `describe`: topic/orders, principal/ci",
    "workflow/configuration/repository": "the file says `cluster`, and lists names of topics",
    "workflow/configuration/untrusted.py": "names the one provider that is allowed by default",
    "workflow/configuration/instances.py": "shows how a variable is named",
}
"""Above the engine, operations that only Kafka has -> why."""


def find_words(text: str, *more: str) -> Iterator[str]:
    """Each line that has a word of Kafka's, with its number. more: patterns of further words that
    may stand there."""
    for number, line in enumerate(text.splitlines(), 1):
        left = line
        for pattern in (*ALLOWED, *more):
            left = re.sub(pattern, "", left, flags=re.IGNORECASE)
        if WORDS.search(left):
            yield f"{number}: {line.strip()}"


def sources(packages: tuple[str, ...]) -> list[str]:
    """Files of these packages, as the tables name them."""
    found = (p for package in packages for p in (ENGINE / package).rglob("*"))
    return sorted(str(p.relative_to(ENGINE)) for p in found if p.suffix in (".py", ".j2"))


@pytest.mark.parametrize("name", [name for name in sources(PACKAGES) if name not in FILES])
def test_the_engine_has_no_word_of_kafkas(name: str) -> None:
    """Neither a name nor a text nor a comment: what only Kafka has is said by its provider."""
    more = ("clusters?(_ACLS)?",) if name in CLUSTER_BLOCKS else ()
    assert not list(find_words((ENGINE / name).read_text("utf-8"), *more))


@pytest.mark.parametrize(
    "name", [n for n in sources(("workflow",)) if not n.startswith(tuple(WORKFLOW))]
)
def test_operations_of_all_providers_have_no_word_of_kafkas(name: str) -> None:
    """Planning, applying and keeping a state are the same for every provider."""
    assert not list(find_words((ENGINE / name).read_text("utf-8")))


@pytest.mark.parametrize(
    "line",
    [
        "for broker in brokers:",
        '"Check bootstrap_servers."',
        "raise OtherCluster",
        "# the controller",
        'MOVE = "throttle"',
        "kafka_acl",
        '"kafka.eu"',
        "text partition(s)",
    ],
)
def test_a_word_of_kafkas_is_found(line: str) -> None:
    """Also inside of a longer name, and near to what is allowed."""
    assert list(find_words(line))


def test_every_exception_is_needed() -> None:
    """An entry that nothing needs any more would hide what comes."""
    engine = [(ENGINE / name).read_text("utf-8") for name in sources((*PACKAGES, "workflow"))]
    for pattern in ALLOWED:
        found = re.compile(pattern, re.IGNORECASE | re.MULTILINE)
        assert any(found.search(text) for text in engine), pattern
    for name in (*FILES, *WORKFLOW):
        paths = [path for path in sources((*PACKAGES, "workflow")) if path.startswith(name)]
        assert any(list(find_words((ENGINE / path).read_text("utf-8"))) for path in paths), name
