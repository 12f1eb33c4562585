"""Bytes of plans and states, changed one at a time, and what was taken for sound."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from kafkaform.core.errors import KafkaformError
from kafkaform.plan.codec import decode, encode
from kafkaform.plan.model import Plan
from kafkaform.state import codec as states

from ...kit.states import state_of, topic
from ...unit.plan.test_codec import full


@dataclass(frozen=True)
class Found:
    """tried: changed bytes; accepted: places and bytes that were not refused."""

    tried: int
    accepted: tuple[tuple[int, int], ...]


def plan() -> Plan:
    """A plan with something in every corner."""
    return full()


def plans(chance: random.Random, number: int) -> Found:
    return flipped(encode(plan()), lambda data: decode(data, "plan.json"), chance, number)


def states_of(number: int) -> bytes:
    return states.encode(state_of(*(topic(f"t{n}") for n in range(number))))


def flipped(
    data: bytes, read: Callable[[bytes], object], chance: random.Random, number: int
) -> Found:
    """One byte after the other becomes another one: a flipped bit, or any."""
    accepted = []
    for turn in range(number):
        # A step that no length divides: few flips are spread over the whole, many are everywhere.
        place = turn * 7_919 % len(data)
        byte = data[place] ^ (1 << chance.randrange(8))
        if turn % 3 == 2:
            byte = (data[place] + chance.randrange(1, 256)) % 256
        try:
            read(data[:place] + bytes([byte]) + data[place + 1 :])
        except KafkaformError:
            continue
        accepted.append((place, byte))
    return Found(number, tuple(accepted))


def state_flips(chance: random.Random, number: int) -> Found:
    return flipped(states_of(20), lambda data: states.decode(data, "state"), chance, number)
