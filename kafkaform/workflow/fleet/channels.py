"""The ways to tell the owners of unused topics: files, a webhook, and issues (`issues`).

A webhook gets one POST for each owner, once: a request that may have arrived is never repeated. Its
address can contain a secret, so no message shows more of it than its host.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct, to_builtins

from ...core.errors import StorageError, UsageError
from ...core.resource import FaultClass
from ...core.secret import Secret, remember_secret
from ...provider.block_checks import is_safe_url
from ...provider.http.client import HttpClient
from ...provider.http.exchange import AnswerLost, Call, NotSent, make_fault
from ...provider.http.settings import BearerToken, HttpSettings
from ..plan_documents import save_file
from .issues import make_issue_channel
from .notices import HEADING, NOBODY, Channel, MaybeDelivered, NotDelivered, OwnerNotice

FORMAT_VERSION = "1.0"
"""Of what a webhook gets."""
TOKEN_VARIABLE = "KAFKAFORM_FLEET_WEBHOOK_TOKEN"
"""The variable of the environment with the bearer token of a webhook."""
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 100


class TellFlags(Struct, frozen=True):
    """How somebody asks to tell owners; at most one of the first three."""

    folder: Path | None = None
    url: str | None = None
    issue: bool = False
    again: bool = False
    propose: Path | None = None
    """Excludes the others."""


def choose_channel(flags: TellFlags, environment: Mapping[str, str]) -> Channel | None:
    """Return the way that the flags name, None for none of them. Raises UsageError."""
    values = {
        "--tell-file": flags.folder is not None,
        "--tell-webhook": flags.url is not None,
        "--tell-issue": flags.issue,
        "--propose": flags.propose is not None,
    }
    named = [flag for flag, is_set in values.items() if is_set]
    if len(named) > 1:
        raise UsageError(
            f"{' and '.join(named)} exclude each other",
            "Use one of them at a time: who was told by one is not told by the other.",
        )
    if flags.again and (not named or flags.propose is not None):
        raise UsageError(
            "--again tells nobody by itself", "Add --tell-file, --tell-webhook or --tell-issue."
        )
    if flags.folder is not None:
        return make_file_channel(flags.folder)
    if flags.url is not None:
        return make_webhook_channel(flags.url, environment.get(TOKEN_VARIABLE))
    return make_issue_channel(environment) if flags.issue else None


def make_file_channel(folder: Path) -> Channel:
    """Write one Markdown file for each owner, which replaces the owner's earlier one."""
    return Channel("file", partial(_save_notice, folder), partial(_replace_notice, folder))


def _replace_notice(folder: Path, notice: OwnerNotice) -> str:
    path = folder / _name_file(notice.owner)
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise NotDelivered(f"{path}: {error.strerror}") from None
    # Another file of this name is none of ours.
    if text == notice.markdown.encode() or not text.startswith(HEADING.encode()):
        return ""
    return _save_notice(folder, notice)


def _name_file(owner: str | None) -> str:
    owner = owner if owner is not None else NOBODY
    name = _UNSAFE.sub("-", owner).strip(".-")[:_LONGEST_NAME]
    if name != owner:
        # Two owners must not write the same file.
        name = f"{name}-{sha256(owner.encode()).hexdigest()[:8]}"
    return f"{name}.md"


def _save_notice(folder: Path, notice: OwnerNotice) -> str:
    path = folder / _name_file(notice.owner)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save_file(path, notice.markdown.encode(), private=False)
    except OSError as error:
        raise NotDelivered(f"{folder}: {error.strerror}") from None
    except StorageError as error:
        raise NotDelivered(error.message) from None
    return str(path)


def make_webhook_channel(url: str, token: str | None) -> Channel:
    """Post JSON for each owner. token: a bearer token, None without a login. Raises UsageError."""
    if not is_safe_url(url):
        raise UsageError(
            "--tell-webhook is not an address that can be used",
            f"Write https://…, without a login in it; put a bearer token into {TOKEN_VARIABLE}.",
        )
    address = urlsplit(url)
    # Whoever knows the path and the query of such an address can post there.
    for secret in (url, address.path, address.query):
        remember_secret(secret)
    settings = HttpSettings(
        (f"{address.scheme}://{address.netloc}",),
        concurrency=1,
        auth=BearerToken(Secret(token)) if token else None,
    )
    return Channel(
        "webhook",
        partial(
            _post_notice,
            settings,
            address.path or "/",
            dict(parse_qsl(address.query, keep_blank_values=True)),
            address.hostname or "",
        ),
    )


def _post_notice(
    settings: HttpSettings, path: str, query: dict[str, str], host: str, notice: OwnerNotice
) -> str:
    body = {
        "format_version": FORMAT_VERSION,
        "owner": notice.owner,
        "title": notice.title,
        "text": notice.markdown,
        "topics": to_builtins(notice.topics),
    }
    call = Call("POST", path, body, query, opaque=True)
    try:
        with closing(HttpClient(settings)) as client:
            answer = client.send(call)
    except NotSent as error:
        raise NotDelivered(f"the webhook at {host}: {error.cause}") from None
    except AnswerLost as error:
        raise MaybeDelivered(f"the webhook at {host}: {error.cause}") from None
    if answer.succeeded:
        return f"the webhook at {host}"
    kind = make_fault(answer, {}, call).kind
    problem = MaybeDelivered if kind is FaultClass.AMBIGUOUS else NotDelivered
    # Not what the server says: it may repeat the address.
    raise problem(f"the webhook at {host} answered with {answer.status}")
