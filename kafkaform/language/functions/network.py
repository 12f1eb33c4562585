"""Functions for ranges of IP addresses in CIDR notation: `10.0.0.0/8`, `2001:db8::/32`."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from ...core.schema import STRING
from ..values.faults import FunctionFault
from ..values.value import ListVal, Number, Val
from .spec import Function, make_number_param, make_string_param
from .string import require_whole

Network = IPv4Network | IPv6Network
_RANGE = re.compile(r"[0-9A-Fa-f.:]+/[0-9]{1,3}")
"""Python's module also takes a netmask behind the slash, and addresses with a zone; Go does not."""


def _parse_network(source: str, argument: int = 0) -> Network:
    if _RANGE.fullmatch(source):
        try:
            return ip_network(source, strict=False)
        except ValueError:
            # The expression also takes 300.1.1.1 and a prefix that is too long.
            pass
    raise FunctionFault('expected a range of addresses such as "10.0.0.0/8"', argument)


def _make_address(network: Network, number: int) -> IPv4Address | IPv6Address:
    return type(network.network_address)(number)


def _cidrhost(prefix: str, host: Number) -> Val:
    network, index = _parse_network(prefix), require_whole(host, 1, "the host", 128)
    count = network.num_addresses
    if not -count <= index < count:
        raise FunctionFault(f"the range has only {count} addresses", 1)
    return str(network.network_address + index % count)


def _cidrnetmask(prefix: str) -> Val:
    network = _parse_network(prefix)
    if isinstance(network, IPv6Network):
        raise FunctionFault("only a range of IPv4 addresses has a netmask", 0)
    return str(network.netmask)


def _cidrsubnet(prefix: str, bits: Number, index: Number) -> Val:
    network = _parse_network(prefix)
    length = _compute_longer_prefix(network, bits, 1)
    position, count = require_whole(index, 2, "the index", 128), 2 ** (length - network.prefixlen)
    if not 0 <= position < count:
        raise FunctionFault(f"there are only {count} such ranges inside, counted from 0", 2)
    start = int(network.network_address) + position * 2 ** (network.max_prefixlen - length)
    return f"{_make_address(network, start)}/{length}"


def _compute_longer_prefix(network: Network, bits: Number, argument: int, minimum: int = 0) -> int:
    """The length of a prefix that is some bits longer. Raises FunctionFault."""
    added_bits = require_whole(bits, argument, "the number of bits")
    room = network.max_prefixlen - network.prefixlen
    if not minimum <= added_bits <= room:
        raise FunctionFault(f"the prefix can be {minimum} to {room} bits longer", argument)
    return network.prefixlen + added_bits


def _cidrsubnets(prefix: str, *lengths: Number) -> Val:
    network = _parse_network(prefix)
    next_free, subnets = int(network.network_address), []
    end = next_free + network.num_addresses
    for argument, bits in enumerate(lengths, 1):
        length = _compute_longer_prefix(network, bits, argument, minimum=1)
        size = 2 ** (network.max_prefixlen - length)
        start = -(-next_free // size) * size  # a range starts at a multiple of its size
        next_free = start + size
        if next_free > end:
            raise FunctionFault("there is no room left for this range", argument)
        subnets.append(f"{_make_address(network, start)}/{length}")
    return ListVal(STRING, tuple(subnets))


def _cidrcontains(prefix: str, inner: str) -> Val:
    outer_network = _parse_network(prefix)
    try:
        address = ip_address(inner)
        inner_network: Network = ip_network(address)
    except ValueError:
        inner_network = _parse_network(inner, 1)
    if inner_network.version != outer_network.version:
        raise FunctionFault("one is IPv4 and the other is IPv6")
    # A range contains another one if the prefix is longer and begins with the same bits.
    supernet = ip_network(
        f"{inner_network.network_address}/{outer_network.prefixlen}", strict=False
    )
    return inner_network.prefixlen >= outer_network.prefixlen and supernet == outer_network


_PREFIX = make_string_param("range")
FUNCTIONS = (
    Function(
        "cidrcontains",
        "Whether the range contains an address or all of another range.",
        _cidrcontains,
        (_PREFIX, make_string_param("inner")),
        steps=25,
    ),
    Function(
        "cidrhost",
        "The address with this number in the range; negative numbers count from the end.",
        _cidrhost,
        (_PREFIX, make_number_param("host")),
        steps=25,
    ),
    Function(
        "cidrnetmask",
        "The netmask of a range of IPv4 addresses.",
        _cidrnetmask,
        (_PREFIX,),
        steps=25,
    ),
    Function(
        "cidrsubnet",
        "The subnet with this index, among those whose prefix is `bits` bits longer.",
        _cidrsubnet,
        (_PREFIX, make_number_param("bits"), make_number_param("index")),
        steps=25,
    ),
    Function(
        "cidrsubnets",
        "Consecutive subnets, each with a prefix that is the given number of bits longer.",
        _cidrsubnets,
        (_PREFIX,),
        make_number_param("bits"),
        steps=25,
    ),
)
