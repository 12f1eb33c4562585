"""Globs, compared with those of file names."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from random import Random

from kafkaform.fleet.landed.register import to_regex


def test_random_globs_and_names() -> None:
    """`*` and `?` mean what they mean in file names, and all else itself."""
    dice, signs = Random(2), "ab.-_[]{}()\\+^$|\n ü🎈"
    hits = 0
    for _ in range(20_000):
        glob = "".join(dice.choices(signs + "***??", k=dice.randrange(5)))
        name = glob.replace("*", dice.choice(("", "a", "x\n"))).replace("?", dice.choice("a.\n"))
        if dice.random() < 0.5:
            name = "".join(dice.sample(name, len(name))) + dice.choice(("", "\n", "a"))
        found = re.fullmatch(to_regex(glob), name) is not None
        assert found == fnmatchcase(name, glob.replace("[", "[[]")), (glob, name)
        hits += found
    assert 5_000 < hits < 19_000
