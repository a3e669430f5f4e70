"""Reader of the recommendation document, one for each version of the software."""

import difflib
import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, get_args

import yaml
from pydantic import ValidationError

from lifelong_core.design.method.conditions import NEVER, Condition, fields_behind
from lifelong_core.design.method.schema import Guide, Method, MetricEntry, Question, Row, Table
from lifelong_core.design.problem_fingerprint import FIELDS, ITEMS, Answer, ProblemFingerprint
from lifelong_core.metrics import METRICS
from lifelong_core.values.errors import ConfigurationError

PARTS = ("meta", "questions", "tables", "guides", "relations", "application", "contradictions")
"""One file for each part of the document."""


def read_parts() -> dict[str, Any]:
    """The document as plain values, unchecked, by part."""
    folder = resources.files("lifelong_core.design").joinpath("method")
    return {part: yaml.safe_load(folder.joinpath(f"{part}.yaml").read_text("utf-8")) for part in PARTS}


def build_method(parts: Mapping[str, Any], *, metrics: Collection[str] | None = None) -> Method:
    """Return a checked document, built from its parts.

    Args:
        parts: plain values, as `read_parts` gives them.
        metrics: the acronyms that exist; None: those of the metric pool.

    Raises:
        MethodError: a part has another form, a combination of answers hits no row or several, a row or a rule can
            never be reached, or a field, a guide or a metric is named that does not exist.
    """
    try:
        method = Method.model_validate(dict(parts))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise MethodError(f"{first['msg']}.", field=".".join(str(part) for part in first["loc"])) from error
    check_method(method, metrics=METRICS if metrics is None else metrics)
    return method


@cache
def load_method() -> Method:
    """The recommendation document of this version, read once.

    Raises:
        MethodError: it is damaged.
    """
    return build_method(read_parts())


class MethodError(ConfigurationError, LookupError):
    """The recommendation document is damaged."""

    code = "method"


def check_method(method: Method, *, metrics: Collection[str]) -> None:
    """Refuse a document that has no recommendation for some answers, or that names unknown items.

    Raises:
        MethodError: the message names the place.
    """
    _check_questions(method)
    domains = {question.field: question.values for question in method.questions}
    _check_names(method, metrics)
    for where, condition in _conditions(method):
        _check_condition(where, condition, domains)
    for table in method.tables:
        _check_partition(table, domains)
        _check_reasons(table, domains, method)
    for guide in method.guides:
        _check_guide(guide, domains)
        _check_references(guide, method)
    for rule in method.contradictions:
        _check_condition(f"contradictions.{rule.id}", rule.when, domains)
    _check_offers(method, domains)


def _check_questions(method: Method) -> None:
    fields = tuple(question.field for question in method.questions)
    if fields != FIELDS:
        wrong = next(pair for pair in itertools.zip_longest(fields, FIELDS) if pair[0] != pair[1])
        raise MethodError(f"expected a question about {wrong[1]}, found {wrong[0]}.", field="questions")
    for place, question in enumerate(method.questions):
        if ITEMS.get(question.id) != question.field:
            raise MethodError(f"{question.id} is not the item of {question.field}.", field="questions")
        _check_answers(question)
        earlier = frozenset(fields[:place])
        looked_at = set(question.applies.fields())
        looked_at |= set(question.implied.when.fields()) if question.implied else set()
        looked_at |= {field for answer in question.answers for field in answer.offered.fields()}
        if late := looked_at - earlier:
            raise MethodError(f"{question.field} depends on later ones: {sorted(late)}.", field="questions")
        _known(question.follow_ups, fields, f"questions.{question.field}.follow_ups", "field")


def _check_answers(question: Question) -> None:
    expected: tuple[Answer, ...] = {
        "yes_no": (True, False),
        "count": ("binary", "multiclass"),
        "choice": _literals(question.field),
    }.get(question.kind, ())
    if question.values != expected:
        raise MethodError(
            f"expected the answers {list(expected)}, found {list(question.values)}.",
            field=f"questions.{question.field}",
        )


def _literals(field: str) -> tuple[str, ...]:
    annotation = ProblemFingerprint.model_fields[field].annotation
    return tuple(value for part in get_args(annotation) for value in get_args(part))


def _check_names(method: Method, metrics: Collection[str]) -> None:
    guides = [guide.id for guide in method.guides]
    _unique(guides, "guides")
    _unique([table.id for table in method.tables], "tables")
    _unique([row.id for table in method.tables for row in table.rows], "tables")
    for where, name in _metrics_named(method):
        _known([name], metrics, where, "metric")
    for where, name in _guides_named(method):
        _known([name], guides, where, "guide")
    for where, entry in _entries(method):
        behind = [field for source in entry.parameters.values() for field in fields_behind(source)]
        _known(behind, FIELDS, where, "field")
    for advice in method.application:
        _known(advice.values, FIELDS, f"application.{advice.id}", "field")
    for rule in method.contradictions:
        for resolution in rule.resolutions:
            _known(resolution.answers, FIELDS, f"contradictions.{rule.id}", "field")


def _entries(method: Method) -> Iterator[tuple[str, MetricEntry]]:
    for table in method.tables:
        for row in table.rows:
            yield from ((f"{table.id}.{row.id}", entry) for entry in row.metrics or ())
    for guide in method.guides:
        for option in guide.options:
            yield from ((f"{guide.id}.{option.id}", entry) for entry in option.metrics)


def _metrics_named(method: Method) -> Iterator[tuple[str, str]]:
    yield from ((where, entry.metric) for where, entry in _entries(method))
    for table in method.tables:
        yield from ((f"{table.id}.pool", metric) for metric in table.pool)
        for rejection in table.rejections:
            yield from ((f"{table.id}.rejections", metric) for metric in rejection.metrics)
    for pair in method.relations.companions:
        yield from (("relations.companions", metric) for metric in pair.metrics)
    for relation in method.relations.further:
        yield from (("relations.further", metric) for metric in relation.metrics)
    for advice in method.application:
        yield from ((f"application.{advice.id}", metric) for metric in advice.metrics)


def _guides_named(method: Method) -> Iterator[tuple[str, str]]:
    for table in method.tables:
        for row in table.rows:
            if row.guide is not None:
                yield f"{table.id}.{row.id}", row.guide
            if row.also is not None:
                yield f"{table.id}.{row.id}.also", row.also.guide
    for guide in method.guides:
        yield from ((f"{guide.id}.like", rule.like) for rule in guide.rules if rule.like is not None)
        yield from ((f"{guide.id}.then", option.then) for option in guide.options if option.then is not None)


def _conditions(method: Method) -> Iterator[tuple[str, Condition]]:
    for question in method.questions:
        yield f"questions.{question.field}", question.applies
        if question.implied:
            yield f"questions.{question.field}", question.implied.when
        for answer in question.answers:
            if answer.offered is not NEVER:
                yield f"questions.{question.field}.{answer.value}", answer.offered
    for where, entry in _entries(method):
        yield where, entry.when
    for table in method.tables:
        yield from ((f"{table.id}.rejections", rejection.when) for rejection in table.rejections)
        yield from ((f"{table.id}.{row.id}.also", row.also.when) for row in table.rows if row.also)
    for guide in method.guides:
        yield from ((guide.id, rule.when) for rule in guide.rules)
    yield from ((f"application.{advice.id}", advice.when) for advice in method.application)


def _check_condition(where: str, condition: Condition, domains: Mapping[str, tuple[Answer, ...]]) -> None:
    _known(condition.fields(), FIELDS, where, "field")
    for answers in _combinations(tuple(dict.fromkeys(condition.fields())), domains, where):
        if condition.holds(answers):
            return
    raise MethodError(f"this condition never holds: {condition}.", field=where)


def _combinations(
    fields: tuple[str, ...], domains: Mapping[str, tuple[Answer, ...]], where: str
) -> Iterator[dict[str, Answer]]:
    for field in fields:
        if not domains[field]:
            raise MethodError(f"{field} has no answers that a condition could name.", field=where)
    for values in itertools.product(*(domains[field] for field in fields)):
        yield dict(zip(fields, values, strict=True))


def _check_offers(method: Method, domains: Mapping[str, tuple[Answer, ...]]) -> None:
    """An answer that is not offered contradicts the answers that rule it out."""
    for question in method.questions:
        where = f"questions.{question.field}"
        for answer in question.answers:
            fields = tuple(dict.fromkeys(answer.offered.fields()))
            for others in _combinations(fields, domains, where):
                if answer.offered.holds(others):
                    continue
                stated = {**others, question.field: answer.value}
                if not any(
                    rule.when.holds(stated) is not False
                    for rule in method.contradictions
                    if question.field in rule.when.fields()
                ):
                    raise MethodError(
                        f"{answer.value} is not offered for {others}, and contradicts nothing.", field=where
                    )


def _check_partition(table: Table, domains: Mapping[str, tuple[Answer, ...]]) -> None:
    _known(table.inputs, FIELDS, f"{table.id}.inputs", "field")
    for row in table.rows:
        _known(row.when, table.inputs, f"{table.id}.{row.id}", "input")
        for field, values in row.when.items():
            _known(values, domains[field], f"{table.id}.{row.id}.{field}", "answer")
        if (row.guide is None) == (row.metrics is None):
            raise MethodError("expected either metrics or a guide.", field=f"{table.id}.{row.id}")
    reached: set[str] = set()
    for answers in _combinations(table.inputs, domains, table.id):
        hit = [row.id for row in table.rows if row.possible(answers)]
        if len(hit) != 1:
            what = f"these rows all fit: {', '.join(hit)}" if hit else "no row fits"
            raise MethodError(f"{what} for {answers}.", field=table.id)
        reached.update(hit)
    if unreached := [row.id for row in table.rows if row.id not in reached]:
        raise MethodError(f"no answers lead to {', '.join(unreached)}.", field=table.id)


def _check_reasons(table: Table, domains: Mapping[str, tuple[Answer, ...]], method: Method) -> None:
    """For all answers, each metric of the pool that a row does not offer has a reason."""
    named = [field for rejection in table.rejections for field in rejection.when.fields()]
    _known(named, table.inputs, f"{table.id}.rejections", "input")
    for answers in _combinations(table.inputs, domains, table.id):
        row = next(row for row in table.rows if row.possible(answers))
        if row.fallback is not None:
            continue  # what is looked up instead is another combination
        offered = metrics_of_row(row, method)
        _known(offered, table.pool, f"{table.id}.{row.id}", "metric of the pool")
        for metric in set(table.pool) - offered:
            if not any(metric in item.metrics and item.when.holds(answers) for item in table.rejections):
                raise MethodError(f"no reason why {metric} is refused for {answers}.", field=table.id)


def metrics_of_row(row: Row, method: Method) -> frozenset[str]:
    """The metrics that a row recommends, or that its guide can choose."""
    options = method.guide(row.guide).options if row.guide is not None else ()
    entries = [*(row.metrics or ()), *(entry for option in options for entry in option.metrics)]
    return frozenset(entry.metric for entry in entries)


def _check_guide(guide: Guide, domains: Mapping[str, tuple[Answer, ...]]) -> None:
    options = [option.id for option in guide.options]
    _unique(options, guide.id)
    chosen = [rule.choose for rule in guide.rules if rule.choose is not None]
    chosen += [guide.default.option] if guide.default else []
    _known(chosen, options, guide.id, "option")
    _known([argument.option for argument in guide.arguments], options, guide.id, "option")
    fields = tuple(dict.fromkeys(field for rule in guide.rules for field in rule.when.fields()))
    first = Counter[int]()
    for answers in _combinations(fields, domains, guide.id):
        held = [place for place, rule in enumerate(guide.rules) if rule.when.holds(answers)]
        first.update(held[:1])
    for place, rule in enumerate(guide.rules):
        if (rule.choose is None) == (rule.like is None):
            raise MethodError("expected a rule to choose an option or to follow a guide.", field=guide.id)
        if not first[place]:
            raise MethodError(f"rule {place + 1} can never decide: {rule.why}", field=guide.id)


def _check_references(guide: Guide, method: Method, above: tuple[str, ...] = ()) -> None:
    """A guide that follows another one has its options, and no guide refers to itself."""
    above = (*above, guide.id)
    likes = [method.guide(rule.like) for rule in guide.rules if rule.like is not None]
    thens = [method.guide(option.then) for option in guide.options if option.then is not None]
    for other in likes:
        _known(
            [option.id for option in other.options],
            [option.id for option in guide.options],
            guide.id,
            "option",
        )
    for other in likes + thens:
        if other.id in above:
            raise MethodError(f"{' -> '.join((*above, other.id))} goes round in a circle.", field=guide.id)
        _check_references(other, method, above)


def _known(names: Iterable[object], known: Collection[object], where: str, what: str) -> None:
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(str(name), [str(other) for other in known], n=1)
            hint = f"Is {close[0]} meant?" if close else None
            raise MethodError(f"there is no {what} {name!r}.", field=where, hint=hint)


def _unique(names: list[str], where: str) -> None:
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise MethodError(f"{', '.join(twice)} exists more than once.", field=where)
