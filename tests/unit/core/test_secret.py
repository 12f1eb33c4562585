"""A secret shows nothing, is written nowhere, and is revealed in few places."""

from __future__ import annotations

import ast
import copy
import json
import pickle
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from kafkaform.core import canonical
from kafkaform.core.secret import Secret, mask_secrets, watch_secrets
from kafkaform.core.value import freeze

from ...kit.sources import ROOT, list_nodes, list_sources

TEXT = "hunter2-hunter2"

REVEALED = {
    "providers/kafkaform_connect/sending.py": 2,  # the configs of a connector
    "providers/kafkaform_kafka/connection/aws_tokens.py": 2,  # the keys that sign
    "providers/kafkaform_kafka/connection/failures.py": 1,  # to mask them
    "providers/kafkaform_kafka/connection/settings.py": 1,  # both clients' settings
    "providers/kafkaform_kafka/connection/key_stores.py": 3,  # what opens a store and its key
    "providers/kafkaform_kafka/memory/session.py": 1,  # the simulated cluster's requests
    "providers/kafkaform_kafka/kinds/config/requests.py": 2,  # a request, and the broker's words
    "providers/kafkaform_kafka/kinds/user/requests.py": 1,  # what is hashed for a request
    "providers/kafkaform_schema_registry/sends.py": 1,  # sensitive properties of a schema
    # The form of a token and of a header, and the headers of a variable of the environment.
    "kafkaform/provider/http/settings.py": 3,
    # The login and the headers of each call, the key and its passphrase.
    "kafkaform/provider/http/client.py": 7,
    "kafkaform/provider/http/connection.py": 1,  # the form that asks for a login token
    "kafkaform/provider/http/tokens.py": 1,  # what that form says
    "providers/kafkaform_kafka/publishing.py": 1,  # a login token
    "providers/kafkaform_kafka/wire/connections.py": 2,  # the HMAC of a token, a login token
    "providers/kafkaform_kafka/wire/security.py": 1,  # how a request names a token
    "providers/kafkaform_kafka/commands/commanded.py": 1,  # the file that is named for it
}
"""Where the text of a secret is needed, and how often. Whoever adds a place says why."""


@dataclass(frozen=True)
class Holder:
    password: Secret


SHOWS: dict[str, Callable[[Secret], str]] = {
    "str": str,
    "repr": repr,
    "ascii": ascii,
    "format": lambda s: f"{s}{s!r}{s!s}{s:>40}",
    "percent": lambda s: "%s %r" % (s, s),  # noqa: UP031  # as a library's logger does it
    "in a tuple": lambda s: str((s, [s], {"a": s})),
    "in a dataclass": lambda s: repr(Holder(s)),
    "in an error": lambda s: "".join(traceback.format_exception(ValueError("wrong", s))),
    "dir": lambda s: str(dir(s)),
}


@pytest.mark.parametrize("show", SHOWS.values(), ids=SHOWS)
def test_nothing_shows_it(show: Callable[[Secret], str]) -> None:
    """Whoever prints what holds a secret prints a stand-in, of one length for all."""
    shown = show(Secret(TEXT))
    assert "hunter" not in shown and str(len(TEXT)) not in shown
    assert shown == show(Secret("another"))


REFUSES: dict[str, Callable[[Any], object]] = {
    "len": len,
    "iter": list,
    "index": lambda s: s[0],
    "contains": lambda s: "h" in s,
    "plus": lambda s: "x" + s,
    "join": lambda s: "".join([s]),
    "order": lambda s: s < Secret("z"),
    "hash": hash,
    "bytes": bytes,
    "vars": vars,
    "copy": copy.copy,
    "deepcopy": lambda s: copy.deepcopy({"a": s}),
    "pickle": lambda s: pickle.dumps([s], 5),
    "old pickle": lambda s: pickle.dumps(s, 0),
    "json": json.dumps,
    "canonical": lambda s: canonical.dumps({"password": s}),
    "freeze": freeze,
}


@pytest.mark.parametrize("use", REFUSES.values(), ids=REFUSES)
def test_what_would_write_or_take_it_apart_is_refused(use: Callable[[Any], object]) -> None:
    """By a TypeError that does not repeat it."""
    with pytest.raises(TypeError) as refused:
        use(Secret(TEXT))
    assert "hunter" not in str(refused.value)


def test_it_is_equal_to_a_secret_of_the_same_text_only() -> None:
    """Not to the text itself, so that no comparison with a guess slips in."""
    assert Secret(TEXT) == Secret(TEXT)
    assert Secret(TEXT) != Secret(f"{TEXT}!") and Secret("ü") != Secret("u")
    assert Secret(TEXT) != TEXT
    assert Secret("\udcff") == Secret("\udcff")


def test_it_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the function that is made for it, whose verdict counts."""
    monkeypatch.setattr("hmac.compare_digest", lambda ours, theirs: ours != theirs)
    assert (Secret("a") == Secret("b")) is True


def test_an_empty_one_is_none() -> None:
    """Whether there is a secret may be known."""
    assert Secret("a") and not Secret("")


def test_the_output_filter_knows_it_from_its_making_on() -> None:
    """Nobody has to remember to tell the filter; another run does not know it."""
    with watch_secrets():
        Secret(TEXT)
        assert mask_secrets(f"password {TEXT}!") == "password (secret)!"
    assert mask_secrets(TEXT) == TEXT


def test_its_text_is_used_in_few_places() -> None:
    """Every call of `reveal` in the product is listed here, and so is every look past it."""
    found: Counter[str] = Counter()
    for path in list_sources():
        name = str(path.relative_to(ROOT))
        for node in list_nodes(path):
            if isinstance(node, ast.Attribute) and node.attr == "reveal":
                found[name] += 1
            assert not (isinstance(node, ast.Constant) and node.value == "reveal"), name
    assert dict(found) == REVEALED
