"""Deliberate faults: small changes of the product's syntax trees, chosen at random with a seed."""

import ast
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PRODUCT = ("lifelong_core", "service", "monitor", "lifelong")
_LOGS = {"log", "logger", "logging"}
_STYLE_KEYWORDS = {"strict", "frozen", "slots", "kw_only"}
"""Arguments that guard against errors of programmers: a change of their value changes no behaviour."""

_SWAPS = [(ast.Lt, ast.GtE), (ast.Gt, ast.LtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)]
_COMPARISONS = {
    "comparison negated": {old: new for pair in _SWAPS for old, new in (pair, pair[::-1])},
    "boundary of a comparison": {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
}
_ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}

Defaults = dict[str, set[str]]
"""For each name of a function or class of the product: its parameters with a default."""


@dataclass(frozen=True)
class Fault:
    """One change of one place: bytes `start` to `end` of `file` become `text`."""

    file: str
    operator: str
    line: int
    start: int
    end: int
    text: str

    def apply(self, source: str) -> str:
        """The source with the fault."""
        data = source.encode()
        return (data[: self.start] + self.text.encode() + data[self.end :]).decode()


def sample(root: Path, *, seed: int, count: int) -> list[Fault]:
    """Choose faults: packages in proportion to their lines; within a package, operators with equal probability."""
    paths = sorted(path for top in PRODUCT for path in (root / top).rglob("*.py"))
    sources = {path.relative_to(root).as_posix(): path.read_text() for path in paths}
    defaults = parameters_with_defaults(ast.parse(source) for source in sources.values())
    lines: defaultdict[str, int] = defaultdict(int)
    faults: defaultdict[str, dict[str, list[Fault]]] = defaultdict(dict)
    for file, source in sources.items():
        package = re.findall(r"^lifelong_core/\w+(?=/)|^\w+", file)[0]
        lines[package] += source.count("\n")
        for fault in faults_of(file, source, defaults):
            faults[package].setdefault(fault.operator, []).append(fault)
    chosen: list[Fault] = []
    for package, share in shares(lines, count).items():
        generator = random.Random(f"{seed} {package}")
        for _ in range(share):
            of_operator = faults[package][generator.choice(sorted(faults[package]))]
            chosen.append(of_operator.pop(generator.randrange(len(of_operator))))
            faults[package] = {name: left for name, left in faults[package].items() if left}
    return chosen


def shares(lines: dict[str, int], count: int) -> dict[str, int]:
    """Split `count` in proportion to the values, by largest remainders."""
    exact = {package: count * number / sum(lines.values()) for package, number in lines.items()}
    rounded = {package: int(share) for package, share in exact.items()}
    by_remainder = sorted(exact, key=lambda package: rounded[package] - exact[package])
    for package in by_remainder[: count - sum(rounded.values())]:
        rounded[package] += 1
    return rounded


def faults_of(file: str, source: str, defaults: Defaults) -> Iterator[Fault]:
    """Yield each fault that an operator makes of a file."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in _behaviour(ast.parse(source)):
        for operator, place, new in _changes(node, defaults):
            start = starts[place.lineno - 1] + place.col_offset
            end = starts[(place.end_lineno or 0) - 1] + (place.end_col_offset or 0)
            text = new if isinstance(new, str) else f"({ast.unparse(new)})"
            yield Fault(file, operator, place.lineno, start, end, text)


def parameters_with_defaults(trees: Iterable[ast.Module]) -> Defaults:
    """Find parameters with a default; of functions and classes with the same name, those that all of them have."""
    defaults: Defaults = {}
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            positional = [*node.args.posonlyargs, *node.args.args]
            optional = positional[len(positional) - len(node.args.defaults) :]
            keywords = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            names = {argument.arg for argument in [*optional, *(key for key, value in keywords if value)]}
        elif isinstance(node, ast.ClassDef):
            fields = [field for field in node.body if isinstance(field, ast.AnnAssign) and field.value]
            names = {field.target.id for field in fields if isinstance(field.target, ast.Name)}
        else:
            continue
        defaults[node.name] = defaults.get(node.name, names) & names
    return defaults


def _behaviour(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below `node`, without texts, types and logs."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns") or (isinstance(node, ast.ClassDef) and name != "body"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_skipped(child):
                yield child
                yield from _behaviour(child)


def _is_skipped(node: ast.AST) -> bool:
    match node:
        case (
            ast.JoinedStr()  # Python 3.11 gives wrong positions inside
            | ast.FunctionDef(name="__repr__")
            | ast.If(test=ast.Name("TYPE_CHECKING") | ast.Compare(left=ast.Name("__name__")))
            | ast.Expr(value=ast.Constant())
        ):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(name) | ast.Attribute(attr=name)))):
            return name.strip("_").lower() in _LOGS
        case ast.keyword(arg=name):
            return name in _STYLE_KEYWORDS
    return False


def _changes(node: ast.AST, defaults: Defaults) -> Iterator[tuple[str, ast.expr | ast.stmt, ast.expr | str]]:
    """Yield operator, the node that it replaces, and the new expression or source."""
    match node:
        case ast.Compare(left, [old, *ops], others):
            for operator, table in _COMPARISONS.items():
                if new := table.get(type(old)):
                    yield operator, node, ast.Compare(left, [new(), *ops], others)
        case ast.BoolOp(op, values):
            new = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield "and/or exchanged", node, ast.BoolOp(new, values)
        case ast.BinOp(left, op, right):
            if (new := _ARITHMETIC.get(type(op))) and not (_is_text(left) or _is_text(right)):
                yield "arithmetic sign exchanged", node, ast.BinOp(left, new(), right)
        case ast.Constant(bool() | int() | float() as value):
            new = not value if isinstance(value, bool) else value + 1
            yield "constant off by one", node, repr(new)
        case ast.UnaryOp(ast.Not(), operand):
            yield "not dropped", node, operand
        case ast.Return(ast.expr() as value) if ast.unparse(value) != "None":
            yield "None returned", node, "return None"
        case ast.Raise():
            yield "raise removed", node, "pass"
        case ast.Expr(ast.Call() | ast.Await(ast.Call())):
            yield "call removed", node, "pass"
        case ast.Call(ast.Name("min" | "max" as name) as function):
            yield "min/max exchanged", function, "max" if name == "min" else "min"
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name) as function, arguments, keywords):
            for keyword in keywords:
                if keyword.arg in defaults.get(name, ()):
                    kept = [other for other in keywords if other is not keyword]
                    yield "argument dropped", node, ast.Call(function, arguments, kept)


def _is_text(node: ast.expr) -> bool:
    """Whether this is no number, though the signs of numbers join it to others."""
    is_string = isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    return is_string or isinstance(node, ast.JoinedStr | ast.List | ast.Tuple)
