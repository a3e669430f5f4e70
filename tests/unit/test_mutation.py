"""The faults of `tests.mutation`: what each operator changes, and what no operator touches."""

import ast

import pytest

from tests.mutation.faults import faults_of, parameters_with_defaults, shares


def changed(source: str) -> set[tuple[str, str]]:
    """Operators, and the line after each fault that differs."""
    defaults = parameters_with_defaults([ast.parse(source)])
    faults = list(faults_of("module.py", source, defaults))
    return {(fault.operator, fault.apply(source).splitlines()[fault.line - 1].strip()) for fault in faults}


@pytest.mark.parametrize(
    ("line", "operator", "expected"),
    [
        ("é = [a < b]", "comparison negated", "é = [(a >= b)]"),
        ("é = [a < b]", "boundary of a comparison", "é = [(a <= b)]"),
        ("x = a and b", "and/or exchanged", "x = (a or b)"),
        ("x = 2 * b", "arithmetic sign exchanged", "x = (2 / b)"),
        ("x = 2 * b", "constant off by one", "x = 3 * b"),
        ("x = f(y, z=True)", "constant off by one", "x = f(y, z=False)"),
        ("x = not y", "not dropped", "x = (y)"),
        ("x = min(y)", "min/max exchanged", "x = max(y)"),
        ("def f(): return 'x'", "None returned", "def f(): return None"),
        ("raise E('text')", "raise removed", "pass"),
        ("await f()", "call removed", "pass"),
    ],
)
def test_operators(line: str, operator: str, expected: str) -> None:
    assert (operator, expected) in changed(line)


def test_only_arguments_with_a_default_are_dropped() -> None:
    source = "def f(a, b=None, *, c, d=None): ...\nx = f(a=a, b=b, c=c, d=d)"
    dropped = {line for operator, line in changed(source) if operator == "argument dropped"}
    assert dropped == {"x = (f(a=a, c=c, d=d))", "x = (f(a=a, b=b, c=c))"}


@pytest.mark.parametrize(
    "source",
    [
        '"""Text."""',
        "x: Annotated[int, 1 < 2]",
        "if TYPE_CHECKING:\n    x = 1",
        "def __repr__(self): return 1",
        "log.info('text', 1 + 2)",
        "self._logger.warning('text', 1)",
        "x = f'{a + 1}'",
        "x = 'a' + 'b'",
        "x = zip(a, b, strict=True)",
    ],
)
def test_texts_types_and_logs_stay(source: str) -> None:
    assert changed(source) == set()


def test_packages_have_faults_in_proportion_to_their_lines() -> None:
    assert shares({"a": 100, "b": 30, "c": 20}, 5) == {"a": 3, "b": 1, "c": 1}
