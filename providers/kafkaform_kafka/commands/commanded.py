"""Commands for what no block declares: `describe` and `alter delegation-token`, tokens to log in
with (KIP-48); `describe` and `alter features`, the features of a cluster and their levels
(KIP-584).

With a token's id and HMAC anybody can log in as its owner. So kafkaform never shows an HMAC; it
writes one only to a file that is named for it, and that only its owner can read.

An `alter features` plans one change for each feature. Its dry run is the controller's own check
(`validateOnly`, KIP-778), which every run asks for first.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Struct

from kafkaform.core.change import Change, add_findings
from kafkaform.core.diagnostics import suggest
from kafkaform.core.errors import KafkaformError, StorageError, UsageError
from kafkaform.core.resource import Absent, Fault, Identity, Observed, Reading
from kafkaform.core.secret import Secret
from kafkaform.core.text import inline
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.commands import (
    Alteration,
    Answer,
    Ask,
    Draft,
    Operand,
    Option,
    Question,
    offer_names,
)
from kafkaform.provider.contract import Session

from ..inspect.document_page import document_page
from ..inspect.documents import read_document
from ..inspect.source import DescribeQuery, make_read_error
from ..kinds.commanded.requests import list_rows
from ..kinds.commanded.resource_types import (
    FEATURE,
    LEVEL,
    LONGEST,
    TOKEN,
    UNSAFE,
    NewToken,
    parse_period,
)
from ..protocol.cluster_facts import (
    FEATURES,
    LEVELS,
    METADATA_VERSION,
    UNKNOWN,
    find_level,
    render_level,
)
from ..rules.commanded import TOKEN_CONNECTIONS, TOKEN_CREATED, TOKEN_EXPIRES
from ..session import KafkaSession
from .completion import complete_entity, list_principals

FLAG = "--hmac-file"


def check_hmac_file(text: str | None) -> Path | None:
    """The file to write to, None without one. Raises UsageError for a file that cannot be made."""
    # Before anything is sent: a token whose HMAC nobody has got is of no use.
    if text is None:
        return None
    path = Path(text)
    if path.exists() or path.is_symlink():
        raise UsageError(f"{FLAG} {inline(text)}: the file exists", "Name a new file.")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise UsageError(
            f"{FLAG} {inline(text)}: no file can be made in that folder", "Name another folder."
        )
    return path


def write_hmac(session: Session, token_id: str, path: Path) -> None:
    """Write the HMAC of this token to a new file with mode 0600, in base64 and with a line end.
    Raises KafkaformError, StorageError."""
    hmac = _read_hmac(session, token_id)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(path, flags, 0o600), "w", encoding="ascii") as file:  # noqa: PTH123  # Path.open cannot set the mode
            file.write(f"{hmac.reveal()}\n")
    except OSError as error:
        raise StorageError(
            f"the HMAC of token {inline(token_id)} cannot be written to {inline(str(path))}: "
            f"{error.strerror}",
            f"`kafkaform describe delegation-tokens {inline(token_id)} {FLAG} FILE` writes it to "
            "another file.",
        ) from None


def _read_hmac(session: Session, token_id: str) -> Secret:
    if not isinstance(session, KafkaSession):
        raise UsageError("only Kafka clusters have delegation tokens", "Choose a kafka provider.")
    rows = list_rows(session.context)
    if isinstance(rows, Fault):
        raise make_read_error(rows)
    for row in rows:
        if row.token_id == token_id:
            return row.hmac
    raise KafkaformError(
        f"token {inline(token_id)} does not exist, or this principal may not see it",
        "`kafkaform describe delegation-tokens` lists the tokens that it can see.",
    )


DOCUMENT = "delegation-tokens"
Ids = Annotated[list[str] | None, Operand("ID…", complete_entity)]
HmacFile = Annotated[
    str | None, Option(FLAG, "Write the token's HMAC to this new file (mode 0600).", "FILE")
]
Owner = Annotated[
    str | None,
    Option("--owner", "Whose token. Default: yours.", "User:NAME", offer_names(list_principals)),
]
Renewers = Annotated[
    list[str] | None,
    Option("--renewer", "Who else can renew it.", "User:NAME", offer_names(list_principals)),
]
_CHOICE = "Give one of --create, --renew and --expire."


def ask_delegation_tokens(
    ids: Ids = None,
    owner: Annotated[
        str, Option("--owner", "Only tokens of these.", "GLOB", offer_names(list_principals))
    ] = "*",
    hmac_file: HmacFile = None,
) -> Question:
    """List delegation tokens with owner, renewers and times.

    The HMAC of a token is a password, so it is never shown; --hmac-file writes it to a file.
    """
    named = tuple(dict.fromkeys(ids or ()))
    path = check_hmac_file(hmac_file)
    if path is not None and len(named) != 1:
        raise UsageError(f"{FLAG} takes the HMAC of one token", "Name one token by its id.")
    fields = FrozenMap() if owner == "*" else FrozenMap(owner=owner)

    def read(session: Session) -> Answer:
        document = _read_tokens(session, DescribeQuery(fields=fields), named)
        if path is not None:
            write_hmac(session, named[0], path)
        return Answer(document)

    return Question(read, document_page)


def alter_delegation_token(
    ids: Ids = None,
    create: Annotated[bool, Option("--create", "Create a token.")] = False,
    renew: Annotated[bool, Option("--renew", "Let these tokens expire later.")] = False,
    expire: Annotated[bool, Option("--expire", "Let these tokens expire, by default now.")] = False,
    owner: Owner = None,
    renewer: Renewers = None,
    max_lifetime: Annotated[
        str | None, Option("--max-lifetime", "Until when it can be renewed, at most.", "7d")
    ] = None,
    period: Annotated[str | None, Option("--period", "When it expires, from now.", "12h")] = None,
    hmac_file: HmacFile = None,
) -> Alteration:
    """Create, renew or expire delegation tokens.

    Without --period, --renew asks for the longest time that the brokers allow.
    """
    if [create, renew, expire].count(True) != 1:
        raise UsageError("it is not clear what to do with delegation tokens", _CHOICE)
    if create:
        _refuse_others("--create", {"an id": ids, "--period": period})
        _check_period("--max-lifetime", max_lifetime)
        return _create(owner, renewer or (), max_lifetime, check_hmac_file(hmac_file))
    flag = "--renew" if renew else "--expire"
    other_flags = {"--owner": owner, "--renewer": renewer, "--max-lifetime": max_lifetime}
    _refuse_others(flag, {**other_flags, FLAG: hmac_file})
    _check_period("--period", period)
    if not ids or "" in ids:
        raise UsageError("no token is named", "`kafkaform describe delegation-tokens` lists ids.")
    return _end(tuple(dict.fromkeys(ids)), period, renews=renew)


# ── create ──────────────────────────────────────────────────────────────────────────────


class _Existing(Struct):
    """The tokens that exist before one is created."""

    ids: frozenset[str] = frozenset()


def _create(
    owner: str | None, renewers: Sequence[str], lifetime: str | None, path: Path | None
) -> Alteration:
    for flag, name in (("--owner", owner), *(("--renewer", renewer) for renewer in renewers)):
        _check_principal(flag, name)
    stamp = f"{int(time.time() * 1000)}-{secrets.token_hex(3)}"
    new = NewToken(owner or "", tuple(sorted(set(renewers))), lifetime or "", stamp)
    existing = _Existing()
    draft = Draft(
        TOKEN,
        new.key,
        lambda _, __: new.attributes,
        _note_creation,
        address=f'{TOKEN}.alter["{owner or "new"}"]',
        managed=True,
    )

    def keep(readings: Mapping[Identity, Reading]) -> None:
        for reading in readings.values():
            if isinstance(reading, Observed):
                existing.ids = frozenset(reading.details["ids"])

    show = Question(partial(_read_created, new=new, existing=existing, path=path), document_page)
    return Alteration((draft,), (show,), ((TOKEN, new.before),), keep)


def _note_creation(change: Change, _: Reading) -> Change:
    note = "whoever gets the token can do all that its owner can, until it expires"
    return add_findings(change, TOKEN_CREATED.find(note))


def _read_created(
    session: Session, new: NewToken, existing: _Existing, path: Path | None
) -> Answer:
    """The token that is new, and its HMAC in the file."""
    document = read_document(session, DOCUMENT, DescribeQuery())
    rows = tuple(
        row
        for row in document[DOCUMENT]
        if row["token_id"] not in existing.ids
        and new.is_asked_for(row["owner"], row["requester"], row["renewers"])
    )
    if path is not None:
        # Somebody else can have created another one of the same owner at the same moment.
        if len(rows) != 1:
            raise KafkaformError(
                f"the token was created, but {len(rows)} tokens could be it: its HMAC is not "
                "written",
                f"`kafkaform describe delegation-tokens ID {FLAG} FILE` writes that of one token.",
            )
        write_hmac(session, rows[0]["token_id"], path)
    return Answer(document.with_items({DOCUMENT: rows}))


# ── renew and expire ────────────────────────────────────────────────────────────────────


def _end(ids: Sequence[str], period: str | None, *, renews: bool) -> Alteration:
    removes = not renews and period is None
    name = "renew_period" if renews else "expiry_period"
    target: dict[str, Value] = {name: period or LONGEST}

    def edit(before: FrozenMap | None, _: Reading) -> FrozenMap | None:
        if before is None or removes:
            return None
        # Only what the change is about: others can renew the token until the plan is applied.
        identity = {token_id: before[token_id] for token_id in ("token_id", "owner")}
        return FrozenMap({**identity, **target})

    note = _note_end if not removes else _note_removal
    drafts = tuple(
        Draft(TOKEN, token_id, edit, note, address=f'{TOKEN}.alter["{token_id}"]', managed=True)
        for token_id in ids
    )
    show = Question(
        lambda session: Answer(_read_tokens(session, DescribeQuery(), ids)), document_page
    )
    needs = tuple((TOKEN, token_id) for token_id in ids)
    return Alteration(drafts, () if removes else (show,), needs, _refuse_missing)


def _refuse_missing(readings: Mapping[Identity, Reading]) -> None:
    for identity, reading in readings.items():
        if isinstance(reading, Absent):
            raise _make_missing_error(identity.key)


def _note_end(change: Change, reading: Reading) -> Change:
    now = reading.attributes if isinstance(reading, Observed) else EMPTY
    if not now:
        return change
    notes = (
        f"it expires at {now['expires']} now, and at {now['ends']} in any case",
        "brokers shorten a longer period to delegation.token.expiry.time.ms",
    )
    return add_findings(change, *map(TOKEN_EXPIRES.find, notes))


def _note_removal(change: Change, _: Reading) -> Change:
    text = "clients that are connected with it stay until they must log in again"
    return add_findings(change, TOKEN_CONNECTIONS.find(text))


# ── what both need ──────────────────────────────────────────────────────────────────────


def _read_tokens(session: Session, query: DescribeQuery, ids: Sequence[str]) -> FrozenMap:
    """The document of these tokens, of all without ids. Raises KafkaformError for a missing one."""
    document = read_document(session, DOCUMENT, query)
    if not ids:
        return document
    tokens = {row["token_id"]: row for row in document[DOCUMENT]}
    for token_id in ids:
        if token_id not in tokens:
            raise _make_missing_error(token_id)
    return document.with_items({DOCUMENT: tuple(tokens[token_id] for token_id in ids)})


def _make_missing_error(token_id: str) -> UsageError:
    return UsageError(
        f"token {inline(token_id)} does not exist, or this principal may not see it",
        "`kafkaform describe delegation-tokens` lists the tokens that it can see.",
    )


def _refuse_others(flag: str, other_flags: Mapping[str, object]) -> None:
    """Raise UsageError for what has no meaning beside this flag."""
    used: Iterable[str] = (name for name, value in other_flags.items() if value)
    if listed := ", ".join(used):
        raise UsageError(f"{flag} does not take {listed}", f"Leave it out. {_CHOICE}")


def _check_period(flag: str, text: str | None) -> None:
    if text is not None and parse_period(text) is None:
        raise UsageError(
            f"{flag} {inline(text)!r} is not a period", "Write it as 30min, 12h or 7d."
        )


def _check_principal(flag: str, text: str | None) -> None:
    # The brokers refuse all other types of principals (INVALID_PRINCIPAL_TYPE).
    if text is not None and not (text.startswith("User:") and text != "User:"):
        raise UsageError(f"{flag} {inline(text)!r} is not a user", "Write User:NAME.")


_LEVEL = re.compile(r"\d{1,5}", re.ASCII)
_RELEASE = re.compile(r"\d+\.\d+", re.ASCII)
_MOST = (1 << 15) - 1
"""The highest level that the protocol can say."""
_WAYS = ("--downgrade", "--unsafe-downgrade")


def complete_levels(_: Sequence[str], __: Ask) -> Iterable[str]:
    """Complete with the known features; a level follows."""
    return [f"{name}=" for name in FEATURES]


def ask_features() -> Question:
    """Show the cluster's features.

    The answer has their levels, and the levels that the brokers support.
    """
    return Question(
        lambda session: Answer(read_document(session, "features", DescribeQuery())), document_page
    )


def alter_features(
    levels: Annotated[list[str], Operand("FEATURE=LEVEL…", complete_levels)],
    downgrade: Annotated[
        bool, Option("--downgrade", "Set lower levels, if no metadata is lost.")
    ] = False,
    unsafe: Annotated[
        bool, Option("--unsafe-downgrade", "Set lower levels, even if metadata is lost.")
    ] = False,
) -> Alteration:
    """Change the levels of features.

    A level is a number; 0 switches a feature off. For metadata.version it can be a release: 4.1.
    """
    if downgrade and unsafe:
        raise UsageError(f"{' and '.join(_WAYS)} exclude each other", "Give one of them.")
    targets: dict[str, int] = {}
    for text in levels:
        name, level = parse_level(text)
        if targets.setdefault(name, level) != level:
            raise UsageError(f"{inline(name)} is given twice", "Name each feature only once.")
    mode = _WAYS[unsafe] if downgrade or unsafe else ""
    drafts = tuple(
        Draft(FEATURE, name, partial(_edit_level, name, level, mode), managed=True)
        for name, level in targets.items()
    )
    return Alteration(drafts, (ask_features(),))


def parse_level(text: str) -> tuple[str, int]:
    """The feature and the level of `FEATURE=LEVEL`. Raises UsageError."""
    name, sign, number = text.partition("=")
    if not sign or not name:
        raise UsageError(
            f"{inline(text)!r} is not FEATURE=LEVEL",
            f"For instance {METADATA_VERSION}={LEVELS[max(LEVELS)]}, or group.version=1.",
        )
    if _LEVEL.fullmatch(number) and int(number) <= _MOST:
        return name, int(number)
    if name == METADATA_VERSION and _RELEASE.fullmatch(number):
        level = find_level(number)
        if level is None:
            raise UsageError(
                f"the level of {METADATA_VERSION} for Kafka {number} is not known",
                f"Give its number, or one of {', '.join(LEVELS.values())}.",
            )
        return name, level
    raise UsageError(
        f"{inline(number)!r} is not a level of {inline(name)}",
        "A level is a whole number; 0 switches a feature off.",
    )


def _edit_level(
    name: str, level: int, mode: str, attributes: FrozenMap | None, _: Reading
) -> FrozenMap | None:
    """The attributes with the wanted level. way: the flag that allows a lower one, or empty.
    Raises UsageError."""
    if attributes is None:
        raise UsageError(
            f"the cluster has no feature {inline(name)}",
            suggest(name, FEATURES) or "`kafkaform describe features` lists its features.",
        )
    now, target = attributes[LEVEL], render_level(name, level)
    if level < now and not mode:
        raise UsageError(
            f"{name} is at level {render_level(name, now)}, so {target} is a downgrade: "
            f"{FEATURES.get(name, UNKNOWN).loss}",
            f"Give {_WAYS[0]}, with which Kafka refuses to lose metadata, or {_WAYS[1]}.",
        )
    if level > now and mode:
        raise UsageError(
            f"{name} is at level {render_level(name, now)}, so {target} is no downgrade",
            f"Leave out {mode}.",
        )
    unsafe = level < now and mode == _WAYS[1]
    return FrozenMap({"name": name, UNSAFE if unsafe else LEVEL: level})
