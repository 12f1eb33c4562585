"""Folders that hold too much of something, and functions that are asked for too much. The tables
are like those of `attacks`."""

from __future__ import annotations

from collections.abc import Mapping

from .attacks import (
    LIMIT,
    LOCALS,
    MANY,
    MEGABYTE,
    PROVIDER,
    STEPS,
    Attack,
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
        main(numbered(f"s# = [{','.join(f'local.s{n}' for n in range(150))}]", 150, LOCALS)),
        "refers to itself",
    ),
    "variables": (main(numbered('variable "v#" {\n  default = #\n}')), ""),
    "resources": (
        main(
            PROVIDER
            + numbered(topic('name = "#-${substr(kafka_topic.t>.name, 0, 9)}"', "t#"), 2_000)
            + topic('name = "x"', "t2000")
        ),
        "",
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
        "calls the module that contains it",
    ),
    "moved": (
        main(
            PROVIDER
            + topic('name = "a"', f"t{MANY}")
            + numbered("moved {\n  from = kafka_topic.t#\n  to   = kafka_topic.t>\n}")
        ),
        "",
    ),
    "moved in a circle": (
        main(
            PROVIDER
            + numbered("moved {\n  from = kafka_topic.t#\n  to   = kafka_topic.t~\n}", 3_000)
        ),
        "lead back to where they start",
    ),
    "removed modules": (
        main(
            PROVIDER
            + numbered("removed {\n  from = module.m#\n}", 5_000)
            + numbered(topic('name = "#"', "t#"), 3_000)
        ),
        "",
    ),
    "ignore_changes": (
        main(
            PROVIDER
            + topic(
                'name = "a"\nlifecycle {\nignore_changes = [\n'
                + numbered('config["*#*a*b*c"],')
                + "\n]\n}"
            )
        ),
        "",
    ),
    "overrides of blocks that repeat each other": (
        {
            "main.kf.hcl": PROVIDER + numbered(topic('  name = "#"', "t#"), 2_000),
            "override.kf.hcl": numbered(topic("  partitions = >", "t#"), 2_000),
        },
        "",
    ),
}

# ── floods of faults ────────────────────────────────────────────────────────────────────

FLOODS: Mapping[str, tuple[Mapping[str, str | bytes], int]] = {
    "unknown names": (main(numbered("s# = local.x#", 50_000, LOCALS)), 1_000),
    "unknown arguments": (main(PROVIDER + topic(numbered("x# = 1", 3_000))), 1_000),
    "unknown blocks": (main(numbered('b# "x" {\n}', 3_000)), 1_000),
    "blocks that are there already": (main(topic("") * 3_000), 1_000),
    "arguments outside of blocks": (main(numbered("x# = 1", 3_000)), 1_000),
    "resources": (main(PROVIDER + numbered(topic('nam = "a"', "t#"), 2_000)), 1_000),
    "syntax errors": (main("= = =\n" * 100_000), 1),
    "arguments that are set twice": (main("locals {\n" + "a = 1\n" * 50_000 + "}\n"), 50),
    "validations": (
        main(
            numbered(
                'variable "v#" {\n  default = #\n  validation {\n    condition     = var.v# < 0\n'
                '    error_message = "no"\n  }\n}',
                4_000,
            )
        ),
        1_000,
    ),
    "checks": (
        main(
            numbered(
                'check "c#" {\n  assert {\n    condition     = false\n    error_message = "no"\n'
                "  }\n}",
                4_000,
            )
        ),
        1_000,
    ),
    "instances": (
        main(PROVIDER + topic('count = 50000\nname = "${count.index}"\npartitions = "x"')),
        3,
    ),
    "one object": (main(PROVIDER + topic('count = 20000\nname = "a"')), 3),
    "instances of modules": (
        {
            "main.kf.hcl": 'module "m" {\n  source = "./m"\n  count  = 1000\n}\n',
            "m/main.kf.hcl": numbered("a# = [][0]", 1_000, LOCALS),
        },
        3 * 1_000,
    ),
    "long names": (
        main(
            PROVIDER
            + f'locals {{\n  long = "{"k" * 10_000}"\n}}\n'
            + topic(
                'for_each = { for i in range(3000) : "${local.long}${i}" => i }\n'
                'name = "t${each.value}"\n'
                'partitions = "x"'
            )
        ),
        3,
    ),
    "JSON syntax": (
        {
            "main.kf.json": '{"locals":{'
            + ",".join(f'"s{n}":"${{local.x}}"' for n in range(MANY))
            + "}}"
        },
        1_000,
    ),
}
"""Name -> files, and how many diagnostics are shown at most beside one that counts the rest."""

# ── functions ───────────────────────────────────────────────────────────────────────────

CALLS = (
    ('format("%999999999d", 1)', "cannot be computed"),
    ('format("%.999999999f", 1)', "cannot be computed"),
    ('format("%[99999999999]d", 1)', "cannot be computed"),
    ('indent(1e9, "a\\nb")', LIMIT),
    ("range(1e9)", LIMIT),
    ("range(0, 1, 1e-999)", LIMIT),
    ("range(0, 1e300, 1e290)", LIMIT),
    ("setproduct(range(1000), range(1000))", LIMIT),
    ("setproduct([for i in range(40) : [1, 2]]...)", LIMIT),
    ("pow(10, 1e9)", LIMIT),
    ("pow(10, -1e9)", ""),
    ("pow(1.5, 1e999)", "cannot be computed"),
    ("pow(1e999, 1e999)", LIMIT),
    ('parseint(join("", range(1500)), 10)', "cannot be computed"),
    ("1e1000 * 1e1000", "cannot be computed"),
    ("1e-1000 * 1e-1000", "cannot be computed"),
    ("1e999 / 1e-999", "cannot be computed"),
    ("1e999 % 1e-999", "cannot be computed"),
    ("sum([for i in range(1000) : 1e999])", ""),
    ('cidrsubnets("::/0", range(300)...)', "cannot be computed"),
    ('cidrsubnet("::/0", 128, pow(2, 128))', "cannot be computed"),
    ('cidrhost("10.0.0.0/8", 1e999)', "cannot be computed"),
    ('formatdate(join("", [for i in range(9999) : "\'"]), "2026-01-01T00:00:00Z")', "cannot be"),
    ('timeadd("2026-01-01T00:00:00Z", "999999999999h")', "cannot be computed"),
    ('retention("999999999999999999999w")', "cannot be computed"),
    ('substr("a", -1e18, 1e18)', ""),
    ("slice([1], 0, 1e300)", "cannot be computed"),
    ("element([1], 1e300)", "cannot be computed"),
    ("chunklist([1], -1)", "cannot be computed"),
    ('jsondecode("1e999999999")', "cannot be computed"),
    ('jsondecode("NaN")', "cannot be computed"),
    ('csvdecode("a,a\\n1,2")', "cannot be computed"),
    ('base64gunzip("H4sIAAAAAAAAA")', "cannot be computed"),
    ('textencodebase64("a", "zlib")', "cannot be computed"),
    ('regex("a{1000000000}", "a")', "cannot be computed"),
    ('regex("((a{99}){99}){99}", "a")', "cannot be computed"),
    ('regex("(?R)", "a")', "cannot be computed"),
    ('regex("(?P<x>a(?P>x)?)", "a")', "cannot be computed"),
    ('regex(join("", [for i in range(2000) : "("]), "a")', "cannot be computed"),
    ('regex(join("", [for i in range(9999) : "a"]), "a")', "cannot be computed"),
    ('file("\\u0000")', "cannot be computed"),
    ('file("/etc/passwd")', "cannot be computed"),
    ('file("../../../../../../etc/passwd")', "cannot be computed"),
    ('file("~/.bashrc")', "cannot be computed"),
    ('file("/dev/zero")', "cannot be computed"),
    ('file("/proc/self/environ")', "cannot be computed"),
    ('file("/proc/self/cwd/main.kf.hcl")', ""),
    ('fileset("/", "**")', "cannot be computed"),
    ('fileset(".", "../*")', "cannot be computed"),
    ('fileset(".", join("", [for i in range(999) : "{"]))', "cannot be computed"),
)
"""Expressions, and words of what is said about each; none if it has a value."""

_TWICE = "[for i in range(100000) : can(@)]"


def _again(call: str, **files: str | bytes) -> Attack:
    return local(_TWICE.replace("@", call), **files), STEPS


TEXTS: Mapping[str, Attack] = {
    "patterns that try everything": (
        local('regex("^(a+)+$", "{}!")'.format("a" * 40)),
        "cannot be",
    ),
    "patterns that go back": (local(f'regex("(x+x+)+y", "{"x" * 5_000}")'), LIMIT),
    "patterns with many groups": (
        local(f'regex("{"(" * 50}a{")" * 50}*$", "{MEGABYTE}")'),
        LIMIT,
    ),
    "many patterns": (local('[for i in range(100000) : can(regex("a${i}(b|c)*d", "b"))]'), LIMIT),
    "many matches": (local(f'regexall("a*?", "{MEGABYTE}")'), "elements"),
    "replacements": (local(f'replace("{MEGABYTE[:100_000]}", "/a/", "$0-----------")'), LIMIT),
    "lists of strings": (local(f'formatlist("%s{MEGABYTE[:900000]}", range(100000))'), LIMIT),
    "transpositions": (
        local('transpose({ for i in range(500) : "k${i}" => range(20000) })'),
        STEPS,
    ),
    "types that differ": (
        local('tolist([for i in range(5000) : { "k${i}" = 1, b = { "k${i}" = 1 } }])'),
        "t",
    ),
    "separators": (local(f'join("{MEGABYTE}", range(100000))'), LIMIT),
    "templates": (
        local('[for i in range(100000) : templatestring("$${a}${i}", { a = i })]'),
        STEPS,
    ),
    "a template that evaluates itself": (
        local('templatefile("t", {})', t='${templatefile("t", {})}'),
        "Too many templates",
    ),
    "a template that doubles itself": (
        local('templatefile("t", {})', t='${templatefile("t", {})}${templatefile("t", {})}'),
        "Too many templates",
    ),
    "YAML that laughs": (
        local(
            'yamldecode(file("x"))',
            x="a: &a [x,x,x,x,x,x,x,x,x]\n"
            + "".join(
                f"{a}: &{a} [{','.join([f'*{b}'] * 9)}]\n"
                for b, a in zip("abcdefgh", "bcdefghi", strict=True)
            )
            + "z: *i\n",
        ),
        LIMIT,
    ),
    "YAML that merges": (
        local(
            'yamldecode(file("x"))',
            x="a: &a {"
            + ",".join(f"k{n}: 1" for n in range(1_000))
            + "}\n"
            + "".join(f"b{n}:\n  <<: *a\n" for n in range(2_000)),
        ),
        LIMIT,
    ),
    "YAML with a large key": (local('yamldecode(file("x"))', x=f"{MEGABYTE}: 1"), "cannot be"),
    "YAML with many anchors": (
        local('yamldecode(file("x"))', x="".join(f"- &a{n} x\n" for n in range(120_000))),
        "t",
    ),
    "YAML again and again": _again('yamldecode(file("x"))', x="- {a: b}\n" * 9_000),
    "CSV with many columns": (
        local('csvdecode(file("x"))', x=",".join(map(str, range(90_000))) + "\n" + "," * 89_999),
        "",
    ),
    "digests again and again": _again('filesha512("x")', x=b"\0" * 8_000_000),
    "folders again and again": _again('fileset(".", "**${i}")'),
}
