"""Folders that are too much of something legal or wrong, functions that are asked for too much, and
paths that lead elsewhere. The tables are like those of `attacks`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from .attacks import (
    LARGE,
    LOCALS,
    MANY,
    MEGABYTE,
    PROVIDER,
    STEPS,
    Attack,
    Files,
    local,
    main,
    numbered,
    topic,
)

# ── references ──────────────────────────────────────────────────────────────────────────

CHAINS: Mapping[str, Attack] = {
    "local values": (main(numbered("s> = local.s#", around="locals {\ns0 = 0\n@\n}\n")), ""),
    "local values, last first": (
        main(numbered("s# = local.s>", around=f"locals {{\n@\ns{MANY} = 0\n}}\n")),
        "",
    ),
    "a cycle of local values": (main(numbered("s# = local.s~", around=LOCALS)), "refers to itself"),
    "local values that name themselves": (
        main(numbered("s# = local.s#", around=LOCALS)),
        "refers to itself",
    ),
    "many cycles": (
        main(numbered(f"s# = [{','.join(f'local.s{n}' for n in range(250))}]", 250, LOCALS)),
        "refers to itself",
    ),
    "variables": (main(numbered('variable "v#" {\n  default = #\n}')), ""),
    "resources": (
        main(PROVIDER + topic('name = "x"', "t2000")
             + numbered(topic('name = "${kafka_topic.t>.name}-"', "t#"), 2_000)),
        "does not name" if False else "",
    ),
    "depends_on": (
        main(PROVIDER + numbered(topic('name = "#"\ndepends_on = [kafka_topic.t~]', "t#"), 5_000)),
        "",
    ),
    "a cycle of modules": (
        {
            "main.kf.hcl": 'module "m" {\n  source = "./a"\n}\n',
            "a/main.kf.hcl": 'module "m" {\n  source = "../b"\n}\n',
            "b/main.kf.hcl": 'module "m" {\n  source = "./../a/../a/./"\n}\n',
        },
        "calls the module that it stands in",
    ),
    "moved": (
        main(PROVIDER + topic('name = "a"', f"t{MANY}")
             + numbered("moved {\n  from = kafka_topic.t#\n  to   = kafka_topic.t>\n}")),
        "",
    ),
    "moved in a circle": (
        main(PROVIDER + numbered("moved {\n  from = kafka_topic.t#\n  to   = kafka_topic.t~\n}")),
        "",
    ),
    "removed modules": (
        main(PROVIDER + numbered("removed {\n  from = module.m#\n}", 5_000)
             + numbered(topic('name = "#"', "t#"), 3_000)),
        "",
    ),
    "ignore_changes": (
        main(PROVIDER + topic('name = "a"\nlifecycle {\nignore_changes = ['
                              + numbered('config["*#*a*b*c"],') + "]\n}")),
        "",
    ),
    "overrides": (
        {
            "main.kf.hcl": PROVIDER + numbered(topic('  name = "#"', "t#"), 2_000),
            "override.kf.hcl": numbered(topic("  partitions = #", "t#"), 2_000),
        },
        "" if False else "",
    ),
}  # fmt: skip
