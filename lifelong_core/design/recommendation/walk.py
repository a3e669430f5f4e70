"""One walk through the recommendation document: what can be said, and what has to be asked first.

Nothing is asked that nothing depends on: a table asks for the first answer that tells its remaining rows apart, a guide
for the first answer that its decision waits for, a metric for the values of its parameters.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias

from lifelong_core.design.method.conditions import (
    Condition,
    ParameterValue,
    alternatives,
    fields_behind,
    parameter_value,
)
from lifelong_core.design.method.schema import (
    AdviceRule,
    Default,
    Guide,
    Method,
    MetricEntry,
    Option,
    Row,
    Rule,
    Table,
)
from lifelong_core.design.problem_fingerprint import Answer, Answers, ProblemFingerprint

Choices: TypeAlias = Mapping[str, tuple[str, ...]]
"""The choices of a person, by guide."""


@dataclass(frozen=True)
class Decision:
    """The decision of a guide; `options` is empty if the choice is open."""

    guide: Guide
    options: tuple[Option, ...]
    rule: Rule | Default | None = None
    """the deciding rule, or the one that leads to the guide of a person's choice"""
    like: "Decision | None" = None
    """the decision of the guide that is followed"""
    by_person: bool = False
    then: tuple["Decision", ...] = ()
    """decisions of the guides that set parameters"""

    def guides(self) -> Iterator[str]:
        """Its guide, the guides that it follows and those that set parameters."""
        yield self.guide.id
        for other in (self.like, *self.then):
            if other is not None:
                yield from other.guides()


@dataclass(frozen=True)
class MetricCandidate:
    """A metric with the sources of its parameter values."""

    metric: str
    sources: Mapping[str, str]
    """parameter -> source of its value; large values are computed for recommended metrics only"""
    given: Mapping[str, float] = field(default_factory=dict[str, float])
    """parameter -> value that a guide sets"""

    def parameters(self, fingerprint: ProblemFingerprint) -> dict[str, ParameterValue]:
        """The values of the parameters."""
        answered = {name: parameter_value(source, fingerprint) for name, source in self.sources.items()}
        return {**{name: value for name, value in answered.items() if value is not None}, **self.given}


@dataclass(frozen=True)
class StepResult:
    """The result of one table."""

    table: Table
    rows: tuple[Row, ...]
    """the row that the answers lead to, then the row that the answers of its fallback lead to, if it has one"""
    answers: Answers
    """the answers that were used, including those of the fallback"""
    decisions: tuple[Decision, ...]
    also: bool
    """whether the second reading of the sources is followed as well"""
    metrics: tuple[MetricCandidate, ...]


@dataclass(frozen=True)
class Walk:
    """A walk over the answers of one fingerprint; `needed` collects the fields to ask."""

    method: Method
    fingerprint: ProblemFingerprint
    choices: Choices
    answers: Answers
    needed: dict[str, None] = field(default_factory=dict[str, None])

    @classmethod
    def start(cls, method: Method, fingerprint: ProblemFingerprint, choices: Choices) -> "Walk":
        """A walk over the answers and those implied by them."""
        return cls(method, fingerprint, choices, with_implied(method, fingerprint.answers()))

    def ask(self, name: str) -> None:
        """Note that a field is needed, or the field that decides whether it applies."""
        question = self.method.question(name)
        conditions = [question.applies, *([question.implied.when] if question.implied else [])]
        for condition in conditions:
            if (before := condition.undecided(self.answers)) is not None:
                self.ask(before)
                return
        self.needed[name] = None

    def decide(self, condition: Condition) -> bool | None:
        """Whether a condition holds; if it is undecided, ask for the field that it waits for."""
        if (name := condition.undecided(self.answers)) is not None:
            self.ask(name)
        return condition.holds(self.answers)

    def step(self, table: Table) -> StepResult | None:
        """The result of a table; None if a field has to be asked first."""
        row = self._row(table)
        if row is None:
            return None
        if row.fallback is not None:
            assumed = replace(self, answers=MappingProxyType({**self.answers, **row.fallback}))
            found = assumed.step(table)
            return None if found is None else replace(found, rows=(row, *found.rows))
        also = row.also is not None and self.decide(row.also.when)
        names = [row.guide] if row.guide is not None else []
        names += [row.also.guide] if also and row.also is not None else []
        decisions = [self.resolve(self.method.guide(name)) for name in names]
        metrics = self.metrics(row.metrics or ())
        for decision in decisions:
            metrics += () if decision is None else self.metrics_of(decision)
        if also is None or None in decisions:
            return None
        known = tuple(decision for decision in decisions if decision is not None)
        return StepResult(table, (row,), self.answers, known, also, metrics)

    def _row(self, table: Table) -> Row | None:
        possible = [row for row in table.rows if row.possible(self.answers)]
        if len(possible) == 1:
            return possible[0]
        self.ask(
            next(
                name
                for name in table.inputs
                if self.answers.get(name) is None and any(name in row.when for row in possible)
            )
        )
        return None

    def resolve(self, guide: Guide) -> Decision | None:
        """The decision of a guide; None if a field has to be asked first."""
        if guide.id in self.choices:
            options = tuple(guide.option(name) for name in self.choices[guide.id])
            return self._with_parameters(Decision(guide, options, by_person=True))
        deciding: Rule | Default | None = guide.default
        for rule in guide.rules:
            holds = self.decide(rule.when)
            if holds is None:
                return None
            if holds:
                deciding = rule
                break
        decided = self._by_rule(guide, deciding)
        return None if decided is None else self._with_parameters(decided)

    def _by_rule(self, guide: Guide, rule: Rule | Default | None) -> Decision | None:
        if rule is None:
            return Decision(guide, ())
        if isinstance(rule, Default):
            return Decision(guide, (guide.option(rule.option),), rule)
        if rule.choose is not None:
            return Decision(guide, (guide.option(rule.choose),), rule)
        other = self.resolve(self.method.guide(str(rule.like)))
        if other is None:
            return None
        options = tuple(guide.option(option.id) for option in other.options)
        return Decision(guide, options, rule, like=other, by_person=other.by_person)

    def _with_parameters(self, decision: Decision) -> Decision | None:
        names = [option.then for option in decision.options if option.then is not None]
        then = [self.resolve(self.method.guide(name)) for name in names]
        known = tuple(item for item in then if item is not None)
        return replace(decision, then=known) if len(known) == len(then) else None

    def metrics_of(self, decision: Decision) -> tuple[MetricCandidate, ...]:
        """The metrics of the chosen options, with the parameters set by further guides."""
        given = {
            name: value
            for item in decision.then
            for option in item.options
            for name, value in option.parameters.items()
        }
        found = tuple(metric for option in decision.options for metric in self.metrics(option.metrics))
        return tuple(replace(item, given=given) for item in found)

    def metrics(self, entries: tuple[MetricEntry, ...]) -> tuple[MetricCandidate, ...]:
        """Metrics with the sources of their parameter values; asks for missing values."""
        return tuple(
            MetricCandidate(entry.metric, self._sources(entry))
            for entry in entries
            if self.decide(entry.when)
        )

    def _sources(self, entry: MetricEntry) -> dict[str, str]:
        """The sources of a metric's parameter values, as far as they are answered."""
        sources: dict[str, str] = {}
        for name, source in entry.parameters.items():
            for alternative in alternatives(source):
                known = [self.value_needed(field) for field in fields_behind(alternative)]
                if all(known):
                    sources[name] = alternative
                    break
        return sources

    def value_needed(self, name: str) -> bool:
        """Whether a value applies and is answered; asks for it if it applies and is missing."""
        if not self.decide(self.method.question(name).applies):
            return False
        if getattr(self.fingerprint, name) is None:
            self.ask(name)
            return False
        return True

    def advice(self, rules: tuple[AdviceRule, ...], metrics: frozenset[str]) -> tuple[AdviceRule, ...]:
        """The advice that applies to recommended metrics."""
        concerned = [rule for rule in rules if not rule.metrics or metrics & set(rule.metrics)]
        holding = tuple(rule for rule in concerned if self.decide(rule.when))
        for rule in holding:
            for name in rule.values:
                self.value_needed(name)
        return holding


def with_implied(method: Method, answers: Answers) -> Answers:
    """The answers, and those implied by them."""
    known: dict[str, Answer | None] = dict(answers)
    for question in method.questions:
        implied = question.implied
        if implied is not None and known[question.field] is None and implied.when.holds(known):
            known[question.field] = implied.answer
    return MappingProxyType(known)


@dataclass(frozen=True)
class WalkResult:
    """All steps that could be taken, the advice that applies, and the fields to ask first."""

    steps: tuple[StepResult, ...]
    advice: tuple[AdviceRule, ...]
    needed: tuple[str, ...]
    """in the order of the interview"""
    answers: Answers


def walk(method: Method, fingerprint: ProblemFingerprint, choices: Choices) -> WalkResult:
    """Go through all tables and the advice."""
    going = Walk.start(method, fingerprint, choices)
    steps = [found for table in method.tables if (found := going.step(table)) is not None]
    metrics = frozenset(metric.metric for step in steps for metric in step.metrics)
    advice = going.advice(method.application, metrics)
    order = [question.field for question in method.questions]
    return WalkResult(tuple(steps), advice, tuple(sorted(going.needed, key=order.index)), going.answers)
