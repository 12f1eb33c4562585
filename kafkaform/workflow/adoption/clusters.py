"""Make `cluster` blocks of the provider blocks of many folders: equal ones become one, with a name
that folders or addresses suggest. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct

from ...core.value import Value
from ...language.declare.blocks import NAME
from ..generate.blocks import make_unique
from .logins import BlockLogin
from .roots import FolderRoot

_HOST = re.compile(r"(?:[a-z][a-z0-9+]*://)?(?P<host>[A-Za-z0-9.-]+)")
_NUMBER = re.compile(r"[-_]?[0-9]+$")


class ClusterDraft(Struct, frozen=True):
    """A `cluster` block to write."""

    name: str
    login: BlockLogin
    """The provider block of the first folder that has it."""
    folders: tuple[str, ...]
    """The paths of the folders with an equal provider block, sorted."""


def draft_clusters(
    roots: Sequence[FolderRoot], addresses: Mapping[str, str]
) -> tuple[ClusterDraft, ...]:
    """One cluster for equal provider blocks, those of most folders first. A block without any
    argument has nothing that folders could share.

    addresses: name of a provider -> its argument that says where it connects.
    """
    groups: dict[tuple[object, ...], list[tuple[str, BlockLogin]]] = defaultdict(list)
    for root in roots:
        for login in root.logins.values():
            if login.arguments and not login.obstacle:
                groups[login.key].append((root.path, login))
    users = {key: sorted({path for path, _ in pairs}) for key, pairs in groups.items()}
    order = sorted(groups, key=lambda key: (-len(users[key]), users[key][0], str(key[0])))
    hosts = {
        key: _list_host_words(pairs[0][1].arguments.get(addresses[pairs[0][1].provider]))
        for key, pairs in groups.items()
    }
    names = set[str]()
    drafts = []
    for key in order:
        login = groups[key][0][1]
        rivals = [rival for rival in order if rival != key and rival[0] == key[0]]
        words = (
            *_list_telling_parts(users[key], [path for k in rivals for path in users[k]]),
            *(w for w in hosts[key] if rivals and not any(w in hosts[k] for k in rivals)),
            *hosts[key][:1],
        )
        noun = login.provider.replace("_", "-")
        suggested = [n for w in words if NAME.fullmatch(w) for n in (w, f"{w}-{noun}")]
        free = next((name for name in (*suggested, noun) if name not in names), noun)
        drafts.append(ClusterDraft(make_unique(free, names), login, tuple(users[key])))
    return tuple(drafts)


def _list_telling_parts(own: Sequence[str], rivals: Sequence[str]) -> list[str]:
    """The parts of paths that most of a cluster's folders have, and few others: such as `prod`."""
    counts = Counter(part for path in own for part in dict.fromkeys(path.split("/")))
    rival_counts = Counter(part for path in rivals for part in set(path.split("/")))
    telling = [
        part
        for part, count in counts.items()
        if 4 * count >= 3 * len(own)
        # What all folders have says nothing, and what most of the others have even less.
        and rival_counts[part] < min(count, len(rivals))
    ]
    return sorted(telling, key=lambda part: (rival_counts[part], -counts[part]))


def _list_host_words(address: Value) -> list[str]:
    """The words of the first address that can name a cluster: of `kafka-1.prod.example:9092`, these
    are `kafka`, `prod` and `example`."""
    first = address[0] if isinstance(address, tuple) and address else address
    match = _HOST.match(first) if isinstance(first, str) else None
    host = match["host"] if match is not None else ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        words = [_NUMBER.sub("", word) for word in host.split(".")]
        return [] if words == ["localhost"] else [word for word in words if word]
    return []
