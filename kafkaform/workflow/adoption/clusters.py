"""Make `cluster` blocks of the provider blocks of many folders: equal ones become one, with a name
that folders or addresses suggest. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from ...core.value import Value
from ...language.declare.blocks import NAME
from ..generate.blocks import make_unique
from .logins import Login
from .roots import Root

_HOST = re.compile(r"(?:[a-z][a-z0-9+]*://)?(?P<host>[A-Za-z0-9.-]+)")
_NUMBER = re.compile(r"[-_]?[0-9]+$")


class ClusterDraft(Struct, frozen=True):
    """A `cluster` block to write."""

    name: str
    login: Login
    """The provider block of the first folder that has it."""
    folders: tuple[str, ...]
    """The paths of the folders with an equal provider block, sorted."""


def draft_clusters(roots: Sequence[Root], addresses: Mapping[str, str]) -> tuple[ClusterDraft, ...]:
    """One cluster for equal provider blocks, those of most folders first. A block without any
    argument has nothing that folders could share.

    addresses: name of a provider -> its argument that says where it connects.
    """
    groups: dict[tuple[object, ...], list[tuple[str, Login]]] = defaultdict(list)
    for root in roots:
        for login in root.logins.values():
            if login.arguments and not login.obstacle:
                groups[login.key].append((root.path, login))
    users = {key: sorted({path for path, _ in pairs}) for key, pairs in groups.items()}
    order = sorted(groups, key=lambda key: (-len(users[key]), users[key][0], str(key[0])))
    names = set[str]()
    drafts = []
    for key in order:
        login = groups[key][0][1]
        rivals = [users[rival] for rival in order if rival != key and rival[0] == key[0]]
        address = login.arguments.get(addresses[login.provider])
        suggested = [*_suggest_names(users[key], rivals, address, login.provider)]
        free = next((name for name in suggested if name not in names), suggested[0])
        drafts.append(ClusterDraft(make_unique(free, names), login, tuple(users[key])))
    return tuple(drafts)


def _suggest_names(
    own: Sequence[str], rivals: Iterable[Sequence[str]], address: Value, provider: str
) -> Iterator[str]:
    """Names for a cluster, the best first: a part that the paths of its folders have and few others
    do, such as `prod`; words of its address; its provider."""
    noun = provider.replace("_", "-")
    rival_parts = Counter(p for paths in rivals for path in paths for p in path.split("/"))
    common = set(own[0].split("/")).intersection(*(path.split("/") for path in own))
    telling = [part for part in common if rival_parts and rival_parts[part] < len(own)]
    telling.sort(key=lambda part: (rival_parts[part], own[0].split("/").index(part)))
    for word in (*telling, *_list_host_words(address)):
        if NAME.fullmatch(word):
            yield word
            yield f"{word}-{noun}"
    yield noun


def _list_host_words(address: Value) -> Iterator[str]:
    """The words of the first address that can name a cluster: of `kafka-1.prod.example:9092`, these
    are `kafka` and `kafka-prod`."""
    first = address[0] if isinstance(address, tuple) and address else address
    match = _HOST.match(first) if isinstance(first, str) else None
    host = match["host"] if match is not None else ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        words = [_NUMBER.sub("", word) for word in host.split(".")]
        if words[0] and words[0] != "localhost":
            yield words[0]
            yield "-".join(words[:2])
