"""The output filter: every spelling of every secret, and nothing else."""

from __future__ import annotations

import base64
import html
import json
from threading import Thread
from urllib.parse import quote, quote_plus

import pytest

from kafkaform.core.secret import (
    FEW,
    MASK,
    SHORTEST,
    KnownSecrets,
    holds_secret,
    mask_secrets,
    watch_secrets,
)
from kafkaform.render.text import inline, render_block, render_message
from kafkaform.render.text import quote as quoted
from kafkaform.syntax.write import quote_string as written

from ...kit.canaries import CANARIES

SECRET = 'pa"ss\\wörd {x} %s\n<next>'


def known(*secrets: str) -> KnownSecrets:
    made = KnownSecrets()
    for secret in secrets:
        made.add(secret)
    return made


@pytest.mark.parametrize("name", CANARIES)
def test_every_spelling_of_every_canary(name: str) -> None:
    """Escaped, encoded, and escaped again, between other words, one after another."""
    secret = CANARIES[name]
    data, once = secret.encode(), json.dumps(secret)[1:-1]
    spelled = {
        "raw": secret,
        "json": once,
        "utf-8 json": json.dumps(secret, ensure_ascii=False)[1:-1],
        "json in json": json.dumps(once)[1:-1],
        "repr": repr(secret)[1:-1],
        "shown": inline(secret),
        "lines": render_block(secret),
        "quoted": quoted(secret)[1:-1],
        "hcl": written(secret)[1:-1],
        "html": html.escape(secret),
        "hex": data.hex(),
        "HEX": data.hex().upper(),
        "url": quote(secret, safe=""),
        "path": quote(secret),
        "query": quote_plus(secret),
        "url in json": json.dumps(quote(secret))[1:-1],
    }
    filter_ = known(secret)
    for form, text in spelled.items():
        assert filter_.mask_secrets(f"a {text} b {text}.") == f"a {MASK} b {MASK}.", form
        assert any(filter_.find_secrets(text)), form
        assert not any(filter_.find_secrets(text[: SHORTEST - 1])), form


@pytest.mark.parametrize("before", [b"", b"x", b"xy", b"user:", b"\0user\0"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_base64_at_any_alignment(before: bytes, encode: object) -> None:
    """As in an Authorization header, or a login frame: whatever comes before and after it."""
    assert callable(encode)
    for after in (b"", b"z", b"zz\xff"):
        whole = encode(before + SECRET.encode() + after).decode()
        said = known(SECRET).mask_secrets(f"Basic {whole}, {whole}")
        assert said.count(MASK) == 2
        assert len(said.replace(MASK, "")) < len("Basic , ") + 2 * (len(before) * 2 + 8)


def test_each_line_of_a_secret_with_several() -> None:
    """Whoever writes line by line tears it up; the frame of a PEM text stays."""
    pem = "-----BEGIN KEY-----\nMIIabcdef\nghijklmn==\n-----END KEY-----\n"
    said = "\n".join(known(pem).mask_secrets(line) for line in pem.splitlines())
    assert said == f"-----BEGIN KEY-----\n{MASK}\n{MASK}\n-----END KEY-----"


def test_the_beginning_of_a_secret_that_was_cut() -> None:
    """Long texts are cut before they get here, so the rest cannot be compared."""
    secret = "s3cr3t-" * 200
    cut = render_message(f"bad value {secret}")
    assert known(secret).mask_secrets(cut).startswith(f"bad value {MASK}… (1,410 characters")
    assert (
        known(secret).mask_secrets(json.dumps(cut)).startswith(f'"bad value {MASK}\\u2026 (1,410')
    )
    assert (
        known(secret).mask_secrets("s3cr3t-s3cr3t is half of it") == "s3cr3t-s3cr3t is half of it"
    )


def test_what_is_no_secret_stays() -> None:
    """Words that begin like one, and secrets too short to be told from other words."""
    assert known("kafka-password").mask_secrets("kafka-passage, kafka-passwor") == (
        "kafka-passage, kafka-passwor"
    )
    assert known("abcde").mask_secrets("abcde") == "abcde"
    assert KnownSecrets().mask_secrets(SECRET) == SECRET


def test_secrets_that_overlap_or_hold_each_other() -> None:
    """The longest one counts, and a false start hides no true one."""
    assert (
        known("secret", "secret-long").mask_secrets("secret-longer secret.") == f"{MASK}er {MASK}."
    )
    assert known("aaaaaab").mask_secrets("aaaaaaaaab") == f"aaa{MASK}"


def test_many_secrets_are_found_as_few_are() -> None:
    """From some number on another search is faster; it finds the same."""
    many = [f"{n:04}-password-{n}" for n in range(FEW)]
    text = " ".join([*many, "0001-passport"])
    assert known(*many).mask_secrets(text) == " ".join([MASK] * len(many) + ["0001-passport"])
    assert known(*many[:1]).mask_secrets(text).startswith(f"{MASK} {many[1]}")


def test_a_run_knows_its_own_secrets() -> None:
    """Also those of a thread that is handed its filter, and no longer than it lasts."""
    with watch_secrets() as ours:
        thread = Thread(target=ours.add, args=("from-a-thread",))
        thread.start()
        thread.join()
        with watch_secrets() as inner:
            inner.add("of-the-inner-run")
            assert not holds_secret("from-a-thread") and holds_secret("of-the-inner-run")
        assert mask_secrets("from-a-thread of-the-inner-run") == f"{MASK} of-the-inner-run"
    assert not holds_secret("from-a-thread")
