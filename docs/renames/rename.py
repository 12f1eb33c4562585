"""rename.py ROOT MAP...: apply rename maps semantically. Lines: `module:old new`, `module:Class.old new`.
--dry: only check."""
import ast, re, sys, os
from pathlib import Path
from collections import defaultdict

DRY = "--dry" in sys.argv
args = [a for a in sys.argv[1:] if not a.startswith("--")]
ROOT = Path(args[0]).resolve()
TOPS = [("kafkaform", ROOT), ("providers", ROOT / "providers"), ("tests", ROOT), ("examples", ROOT), ("docs", ROOT), ("release", ROOT)]
mods, methods = {}, {}
where = {}
for f in args[1:]:
    for n, line in enumerate(Path(f).read_text().splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"): continue
        line = line.split("  #")[0].strip()
        m = re.match(r"^([\w.]+):([\w.]+)\s+(?:->\s*)?([\w.]+)$", line)
        if not m:
            print("BAD LINE", f, n, line); continue
        mod, old, new = m.groups()
        new = new.rpartition(".")[2]
        key = (mod, old)
        if old.rpartition(".")[2] == new: continue
        if "." in old: methods[key] = new
        else: mods[key] = new
        where[key] = f"{Path(f).name}:{n}"

paths = []
for top, base in TOPS:
    d = ROOT / top
    if d.exists():
        paths += [(p, base) for p in sorted(d.rglob("*.py")) if ".venv" not in p.parts]
def modname(p, base):
    parts = p.relative_to(base).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

class F: pass
files = {}
for p, base in paths:
    f = F(); f.path = p; f.name = modname(p, base); f.text = p.read_text(encoding="utf-8")
    f.pkg = f.name if p.name == "__init__.py" else f.name.rpartition(".")[0]
    f.tree = ast.parse(f.text)
    f.lines = f.text.split("\n")
    files[f.name] = f

def resolve_from(f, node):
    if node.level:
        parts = f.pkg.split(".")
        parts = parts[:len(parts) - (node.level - 1)]
        return ".".join(parts + (node.module.split(".") if node.module else []))
    return node.module

# ---------- scopes
class Scope:
    def __init__(s, kind, parent, node):
        s.kind, s.parent, s.node = kind, parent, node
        s.bound = {}       # name -> list of ('def',)|('import', module, name)|('module', modname)|('local',)
        s.globals = set(); s.uses = []
def lookup(scope, name):
    s, first = scope, True
    while s is not None:
        if name in s.globals:
            while s.parent: s = s.parent
            return s
        if name in s.bound and (s.kind != "class" or first): return s
        first = first and s.kind == "comp" and False
        first = False
        s = s.parent
    return None

class V(ast.NodeVisitor):
    def __init__(v, f):
        v.f = f; v.scope = Scope("module", None, f.tree); f.scope = v.scope; f.attrs = []; f.imports = []; f.defs = []; f.uses = []; f.strs = []
    def bind(v, name, what): 
        s = v.scope
        if name in s.globals:
            while s.parent: s = s.parent
        s.bound.setdefault(name, []).append(what)
    def visit_Import(v, n):
        for a in n.names:
            if a.asname: v.bind(a.asname, ("module", a.name))
            else: v.bind(a.name.split(".")[0], ("module", a.name.split(".")[0]))
    def visit_ImportFrom(v, n):
        m = resolve_from(v.f, n)
        for a in n.names:
            v.f.imports.append((v.scope, m, a, n))
            full = f"{m}.{a.name}"
            if full in files: v.bind(a.asname or a.name, ("module", full))
            else: v.bind(a.asname or a.name, ("import", m, a.name))
    def visit_Global(v, n): v.scope.globals.update(n.names)
    def func(v, n):
        if not isinstance(n, ast.Lambda):
            for d in n.decorator_list: v.visit(d)
            v.bind(n.name, ("def", n)); v.f.defs.append((v.scope, n))
            if n.returns: v.visit(n.returns)
        a = n.args
        for d in a.defaults + [x for x in a.kw_defaults if x]: v.visit(d)
        allargs = a.posonlyargs + a.args + a.kwonlyargs + ([a.vararg] if a.vararg else []) + ([a.kwarg] if a.kwarg else [])
        for x in allargs:
            if x.annotation: v.visit(x.annotation)
        s = Scope("function", v.scope, n); old = v.scope; v.scope = s
        for x in allargs: v.bind(x.arg, ("local",))
        for b in (n.body if isinstance(n.body, list) else [n.body]): v.visit(b)
        v.scope = old
    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = func
    def visit_ClassDef(v, n):
        for d in n.decorator_list: v.visit(d)
        for b in n.bases: v.visit(b)
        for k in n.keywords: v.visit(k)
        v.bind(n.name, ("def", n)); v.f.defs.append((v.scope, n))
        s = Scope("class", v.scope, n); old = v.scope; v.scope = s
        for b in n.body: v.visit(b)
        v.scope = old
    def comp(v, n):
        v.visit(n.generators[0].iter)
        s = Scope("comp", v.scope, n); old = v.scope; v.scope = s
        for i, g in enumerate(n.generators):
            v.visit(g.target)
            if i: v.visit(g.iter)
            for c in g.ifs: v.visit(c)
        if isinstance(n, ast.DictComp): v.visit(n.key); v.visit(n.value)
        else: v.visit(n.elt)
        v.scope = old
    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = comp
    def visit_NamedExpr(v, n):
        s = v.scope
        while s.kind == "comp": s = s.parent
        s.bound.setdefault(n.target.id, []).append(("local",)); v.f.uses.append((v.scope, n.target))
        v.visit(n.value)
    def visit_Name(v, n):
        if isinstance(n.ctx, (ast.Store, ast.Del)): v.bind(n.id, ("local",))
        v.f.uses.append((v.scope, n))
    def visit_ExceptHandler(v, n):
        if n.name: v.bind(n.name, ("local",))
        v.generic_visit(n)
    def visit_MatchAs(v, n):
        if n.name: v.bind(n.name, ("local",))
        v.generic_visit(n)
    def visit_MatchStar(v, n):
        if n.name: v.bind(n.name, ("local",))
    def visit_MatchMapping(v, n):
        if n.rest: v.bind(n.rest, ("local",))
        v.generic_visit(n)
    def visit_Attribute(v, n):
        v.f.attrs.append((v.scope, n)); v.generic_visit(n)
    def visit_Constant(v, n):
        if isinstance(n.value, str): v.f.strs.append((v.scope, n))
    def visit_Call(v, n):
        n._scope = v.scope; v.generic_visit(n)
for f in files.values():
    V(f).visit(f.tree)

# entries that exist
missing = []
for (m, o) in list(mods):
    f = files.get(m)
    ok = f and any(w[0] in ("def", "local") for w in f.scope.bound.get(o, []))
    if not ok:
        missing.append((m, o)); del mods[(m, o)]

# re-export closure: alias[(mod,name)] = origin key
def origin(m, name, seen=()):
    if (m, name) in seen: return None
    f = files.get(m)
    if not f: return None
    for w in f.scope.bound.get(name, []):
        if w[0] in ("def", "local"): return (m, name)
        if w[0] == "import":
            return origin(w[1], w[2], (*seen, (m, name))) or None
    return None

def module_of(f, scope, node):
    """dotted module that an expression denotes"""
    if isinstance(node, ast.Name):
        s = lookup(scope, node.id)
        if s is None: return None
        for w in s.bound[node.id]:
            if w[0] == "module": return w[1]
        return None
    if isinstance(node, ast.Attribute):
        b = module_of(f, scope, node.value)
        if b and f"{b}.{node.attr}" in files: return f"{b}.{node.attr}"
        if b in files:
            for w in files[b].scope.bound.get(node.attr, []):
                if w[0] == "module": return w[1]
    return None

def class_of(f, scope, node):
    """(module, class) that an expression denotes, as it is called before the renames"""
    if isinstance(node, ast.Name):
        sc = lookup(scope, node.id)
        for w in (sc.bound[node.id] if sc else ()):
            if w[0] == "def" and isinstance(w[1], ast.ClassDef) and sc is f.scope: return (f.name, node.id)
            if w[0] == "import": return origin(w[1], w[2])
    if isinstance(node, ast.Attribute):
        b = module_of(f, scope, node.value)
        return origin(b, node.attr) if b else None
    return None

conflicts = {}
def plan_file(f, active):
    """edits: list of (line, col, old, new); also conflicts"""
    edits, hits = [], defaultdict(list)   # hits: (scope,newname) -> keys
    renamed_bindings = {}  # (scope, name) -> (key,new)
    for name, whats in f.scope.bound.items():
        key = (f.name, name)
        if key in active and any(w[0] in ("def", "local") for w in whats):
            renamed_bindings[(f.scope, name)] = key
    for scope, m, a, n in f.imports:
        o = origin(m, a.name)
        if o in active:
            if a.asname == active[o] and a.lineno == a.end_lineno:
                edits.append((a.lineno, a.col_offset, f"{a.name} as {a.asname}", active[o], o))
                continue
            edits.append((a.lineno, a.col_offset, a.name, active[o], o))
            if a.asname == a.name:  # an explicit re-export
                edits.append((a.end_lineno, a.end_col_offset - len(a.name), a.name, active[o], o))
            if not a.asname or a.asname == a.name:
                s = scope
                if a.name in s.globals: s = f.scope
                renamed_bindings[(s, a.name)] = o
    for (s, name), key in renamed_bindings.items():
        new = active[key]
        if new in s.bound and (s, new) not in renamed_bindings:
            # `import x as new` of the very thing is fine
            if all(w[0]=="import" and origin(w[1],w[2])==key for w in s.bound[new]): continue
            conflicts.setdefault(key, f"{f.name}: {new} is bound in the same scope")
        others = [k for (s2, n2), k in renamed_bindings.items() if s2 is s and k != key and active[k] == new]
        if others: conflicts.setdefault(key, f"{f.name}: {new} is also the new name of {others[0]}")
    for scope, n in f.uses:
        s = lookup(scope, n.id)
        if s is None: 
            continue
        key = renamed_bindings.get((s, n.id))
        if not key: continue
        new = active[key]
        edits.append((n.lineno, n.col_offset, n.id, new, key))
        t = scope
        while t is not s:   # capture
            if new in t.bound and t.kind != "class" or (new in t.bound and t is scope):
                if (t, new) not in renamed_bindings:
                    conflicts.setdefault(key, f"{f.name}:{n.lineno}: {new} is a local name there")
            t = t.parent
    for scope, n in f.defs:
        key = renamed_bindings.get((f.scope, n.name)) if scope is f.scope else None
        if key:
            edits.append(("def", n, key))
    for scope, n in f.attrs:
        m = module_of(f, scope, n.value)
        if m:
            o = origin(m, n.attr)
            if o in active:
                edits.append((n.end_lineno, n.end_col_offset - len(n.attr.encode()), n.attr, active[o], o))
    # global statements
    for node in ast.walk(f.tree):
        if isinstance(node, ast.Global):
            for nm in node.names:
                if (f.scope, nm) in renamed_bindings: edits.append(("glob", node, nm, renamed_bindings[(f.scope, nm)]))
        if isinstance(node, ast.Call) and len(node.args) >= 2 and isinstance(node.args[1], ast.Constant) and isinstance(node.args[1].value, str):
            m = module_of(f, getattr(node, "_scope", f.scope), node.args[0])
            if not m:
                cls = class_of(f, getattr(node, "_scope", f.scope), node.args[0])
                new = methods.get((cls[0], f"{cls[1]}.{node.args[1].value}")) if cls else None
                if new:
                    c = node.args[1]; edits.append((c.lineno, c.col_offset + 1, c.value, new, cls))
            if m:
                o = origin(m, node.args[1].value)
                if o in active:
                    c = node.args[1]; edits.append((c.lineno, c.col_offset + 1, c.value, active[o], o))
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            for c in ast.walk(node.value):
                if isinstance(c, ast.Constant) and isinstance(c.value, str):
                    o = origin(f.name, c.value)
                    if o in active: edits.append((c.lineno, c.col_offset + 1, c.value, active[o], o))
    return edits, renamed_bindings

active = dict(mods)
for round_ in range(8):
    conflicts.clear()
    for f in files.values(): plan_file(f, active)
    if not conflicts: break
    for k, why in conflicts.items():
        print("CONFLICT", where[k], k, "->", active.get(k), "|", why); active.pop(k, None)
print(f"module-level: {len(active)} applied, {len(missing)} missing")
for k in missing: print("MISSING", where[k], *k)

def apply_edits(f, flat):
    lines = [l.encode() for l in f.text.split("\n")]
    for line, col, old, new in sorted(set(flat), reverse=True):
        b = lines[line - 1]
        o = old.encode()
        if b[col:col + len(o)] != o:
            print("MISMATCH", f.path, line, col, old, b.decode()[:120]); continue
        lines[line - 1] = b[:col] + new.encode() + b[col + len(o):]
    f.text = b"\n".join(lines).decode()

textual = defaultdict(dict)
for f in files.values():
    edits, rb = plan_file(f, active)
    flat = []
    for e in edits:
        if e[0] == "def":
            n, key = e[1], e[2]
            # find the name after def/class
            ln = n.lineno
            line = f.lines[ln - 1].encode()
            m = re.compile(rb"\b(?:def|class)\s+" + n.name.encode() + rb"\b").search(line, n.col_offset)
            if m: flat.append((ln, m.end() - len(n.name.encode()), n.name, active[key]))
            else: print("NODEF", f.path, ln)
        elif e[0] == "glob":
            node, nm, key = e[1:]
            line = f.lines[node.lineno - 1].encode()
            m = re.search(rb"\b" + nm.encode() + rb"\b", line[node.col_offset + 6:])
            flat.append((node.lineno, node.col_offset + 6 + m.start(), nm, active[key]))
        elif e[0] == "as": pass
        else: flat.append(e[:4])
    f.flat = flat
    f.mentions = {name: active[k] for (s, name), k in rb.items()}

# ---------- methods through mypy
if methods:
    sys.path.insert(0, str(ROOT / "providers")); os.chdir(ROOT)
    from mypy import build as mb, nodes as mn, types as mt
    from mypy.options import Options
    from mypy.modulefinder import BuildSource
    from mypy.fscache import FileSystemCache
    o = Options(); o.export_types = True; o.preserve_asts = True; o.check_untyped_defs = True
    o.mypy_path = ["providers"]; o.ignore_missing_imports = True; o.incremental = False; o.show_traceback = False
    o.python_version = (3, 11); o.cache_dir = os.devnull; o.namespace_packages = True; o.explicit_package_bases = False
    srcs = [BuildSource(str(f.path.relative_to(ROOT)), f.name) for f in files.values() if f.name.split(".")[0] in ("kafkaform", "kafkaform_kafka", "tests")]
    res = mb.build(srcs, o)
    want = defaultdict(list)
    for (m, q), new in methods.items():
        c, _, old = q.rpartition(".")
        want[old].append((f"{m}.{c}", new, (m, q)))
    found = set(); anyuse = defaultdict(list)
    def infos(t):
        t = mt.get_proper_type(t)
        if isinstance(t, mt.Instance): return [t.type]
        if isinstance(t, mt.UnionType): return [i for x in t.items for i in infos(x)]
        if isinstance(t, mt.TypeType): return infos(t.item)
        if isinstance(t, mt.CallableType) and t.is_type_obj(): return [t.type_object()]
        if isinstance(t, mt.Overloaded) and t.is_type_obj(): return [t.type_object()]
        if isinstance(t, mt.TupleType): return [t.partial_fallback.type]
        if isinstance(t, mt.TypeVarType): return infos(t.upper_bound)
        if isinstance(t, mt.LiteralType): return infos(t.fallback)
        return []
    def newfor(info, name):
        for b in info.mro:
            for full, new, key in want[name]:
                if b.fullname == full: found.add(key); return new
        return None
    import gc
    def walk(tree):
        seen, stack, out = set(), list(tree.defs), []
        while stack:
            x = stack.pop()
            if id(x) in seen: continue
            seen.add(id(x))
            if isinstance(x, (list, tuple)): stack.extend(x); continue
            if isinstance(x, (mn.MypyFile, mn.TypeInfo, mn.Var, mn.SymbolTable, mn.SymbolTableNode, mn.TypeAlias, mn.FakeInfo)) or isinstance(x, mt.Type): continue
            if isinstance(x, (mn.Expression, mn.FuncItem)): out.append(x)
            if isinstance(x, mn.RefExpr):
                if isinstance(x, mn.MemberExpr): stack.append(x.expr)
                continue
            if isinstance(x, (mn.Node, mn.Argument if hasattr(mn,"Argument") else mn.Node)):
                for y in gc.get_referents(x):
                    if isinstance(y, (mn.Node, list, tuple)): stack.append(y)
        return out
    classes = {}
    for (m, q), new in methods.items():
        classes.setdefault((m, q.rpartition(".")[0]), {})[q.rpartition(".")[2]] = new
    for mid, st in res.graph.items():
        f = files.get(mid)
        if not f or st.tree is None: continue
        flat = f.flat
        for e in walk(st.tree):
            if isinstance(e, mn.MemberExpr) and e.name in want:
                t = res.types.get(e.expr)
                inf = infos(t) if t is not None else []
                if isinstance(e.expr, mn.RefExpr) and isinstance(e.expr.node, mn.TypeInfo): inf = [e.expr.node]
                new = next((x for i in inf if (x := newfor(i, e.name))), None)
                if new: flat.append((e.end_line, e.end_column - len(e.name), e.name, new))
                elif not inf: anyuse[e.name].append(f"{f.path.relative_to(ROOT)}:{e.line}")
            elif isinstance(e, mn.SuperExpr) and e.name in want and e.info:
                new = newfor(e.info, e.name)
                if new: flat.append((e.end_line, e.end_column - len(e.name), e.name, new))
        for node in ast.walk(f.tree):
            if not isinstance(node, ast.ClassDef): continue
            sym = st.tree.names.get(node.name)
            info = sym.node if sym and isinstance(sym.node, mn.TypeInfo) else None
            for b in node.body:
                if isinstance(b, (ast.FunctionDef, ast.AsyncFunctionDef)) and b.name in want:
                    new = newfor(info, b.name) if info else None
                    if not info:
                        for base in node.bases:
                            nm = base.id if isinstance(base, ast.Name) else None
                            k = origin(f.name, nm) if nm else None
                            new = new or classes.get(k, {}).get(b.name)
                        if not new: print("LOCAL CLASS?", f.path.relative_to(ROOT), b.lineno, b.name)
                    if new:
                        line = f.lines[b.lineno - 1].encode()
                        m = re.compile(rb"\bdef\s+" + b.name.encode() + rb"\b").search(line)
                        flat.append((b.lineno, m.end() - len(b.name), b.name, new))
                        if info and new in info.names: print("METHOD CLASH", info.fullname, b.name, new)
    for k in methods:
        if k not in found: print("METHOD MISSING", where[k], k)
    for n, ps in anyuse.items():
        print("UNTYPED USE", n, ps[:12])
    print("methods:", len(found))

# dotted mentions in strings, docs
dotted = {}
for (m, o), new in active.items():
    dotted[f"{m}.{o}"] = f"{m}.{new}"; dotted[f"{m}:{o}"] = f"{m}:{new}"
for (m, q), new in methods.items():
    c = q.rpartition(".")[0]
    dotted[f"{m}.{q}"] = f"{m}.{c}.{new}"
short = {}
amb = set()
for (m, o), new in active.items():
    k = f"{m.rpartition('.')[2]}.{o}"
    if k in short and short[k] != f"{m.rpartition('.')[2]}.{new}": amb.add(k)
    short[k] = f"{m.rpartition('.')[2]}.{new}"
for (m, q), new in methods.items():
    c, _, o_ = q.rpartition(".")
    short[f"{c}.{o_}"] = f"{c}.{new}"
for k in amb: short.pop(k, None)
def mention(text, own=None):
    text = re.sub(r"(?<![\w.])[\w]+(?:\.\w+)+(?::\w+)?", lambda m: dotted.get(m[0], m[0]), text)
    text = re.sub(r"(?<![\w./])(\w+\.\w+)(?![\w./(]*\.(?:py|md))\b", lambda m: short.get(m[0], m[0]), text)
    if own: text = re.sub(r"`(\w+)`", lambda m: f"`{own.get(m[1], m[1])}`", text)
    return text
import io, tokenize
def mention_file(f):
    """comments and docstrings only"""
    out, toks = [], list(tokenize.generate_tokens(io.StringIO(f.text).readline))
    spans = []
    for t in toks:
        if t.type in (tokenize.COMMENT, tokenize.STRING) : spans.append(t)
    lines = f.text.split("\n")
    for t in reversed(spans):
        own = f.mentions if (t.type == tokenize.COMMENT or t.string[:3] in ('"""', 'r""')) else None
        new = mention(t.string, own)
        if new != t.string:
            (l1, c1), (l2, c2) = t.start, t.end
            head, tail = lines[l1 - 1][:c1], lines[l2 - 1][c2:]
            lines[l1 - 1:l2] = (head + new + tail).split("\n")
    f.text = "\n".join(lines)
n = 0
for f in files.values():
    before = f.text
    apply_edits(f, f.flat)
    try: mention_file(f)
    except tokenize.TokenError as e: print("TOK", f.path, e)
    if f.text != before:
        n += 1
        if not DRY: f.path.write_text(f.text, encoding="utf-8")
for p in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md"), ROOT / "pyproject.toml", *ROOT.glob("examples/**/*.md")]:
    t = p.read_text(); u = mention(t)
    if t != u:
        n += 1
        if not DRY: p.write_text(u)
print("files changed", n)
