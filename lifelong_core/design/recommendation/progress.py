"""Progress of an interview: answered questions, those certain to come and those that may come."""

from dataclasses import dataclass, field
from types import MappingProxyType

from pydantic import Field

from lifelong_core.design.method.conditions import Condition, fields_behind
from lifelong_core.design.method.schema import Guide, Method, MetricEntry, Option, Row
from lifelong_core.design.problem_fingerprint import Answers, ProblemFingerprint
from lifelong_core.design.recommendation.walk import Choices, walk, with_implied
from lifelong_core.values.documents import Frozen


class Progress(Frozen):
    """Progress of an interview; an answer that affects nothing does not count.

    A further answer never lowers `answered` and never raises `possible`; a changed answer may do both.
    """

    answered: int = Field(ge=0, description="Questions that are answered.")
    certain: int = Field(ge=0, description="Questions that are asked for any answers to come.")
    possible: int = Field(
        ge=0, description="Most questions that may still be asked, including the certain ones."
    )

    @property
    def fewest(self) -> int:
        """The least number of questions of the whole interview: answered ones and those certain to come."""
        return self.answered + self.certain

    @property
    def share(self) -> float:
        """The share of the interview that is certainly done, 0 to 1; 1 only at its end.

        Examples:
            >>> Progress(answered=6, certain=2, possible=6).share
            0.5
        """
        return self.answered / (self.answered + self.possible) if self.answered or self.possible else 1.0


def progress_of(method: Method, fingerprint: ProblemFingerprint, choices: Choices) -> Progress:
    """The progress of an interview by a recommendation document."""
    return Progress(
        answered=len(used_answers(method, fingerprint, choices)),
        certain=len(walk(method, fingerprint, choices).needed),
        possible=len(possible_questions(method, fingerprint, choices)),
    )


def used_answers(method: Method, fingerprint: ProblemFingerprint, choices: Choices) -> tuple[str, ...]:
    """The answers that affect the recommendation: each would be asked for if it were missing."""
    return tuple(
        name
        for name in fingerprint.answered_fields()
        if name in walk(method, fingerprint.without(name), choices).needed
    )


def possible_questions(method: Method, fingerprint: ProblemFingerprint, choices: Choices) -> frozenset[str]:
    """The unanswered fields that may still be asked: a superset of them, and empty for a complete fingerprint."""
    outlook = _Outlook(method, choices, with_implied(method, fingerprint.answers()))
    metrics = frozenset[str]().union(*(outlook.metrics(table.rows) for table in method.tables))
    for rule in method.application:
        if (not rule.metrics or metrics & set(rule.metrics)) and outlook.may_hold(rule.when):
            for name in rule.values:
                outlook.value(name)
    return frozenset(outlook.asked)


@dataclass(frozen=True)
class _Outlook:
    """A walk along all ways that are still open; `asked` collects the fields that any of them asks for."""

    method: Method
    choices: Choices
    answers: Answers
    asked: set[str] = field(default_factory=set[str])

    def ask(self, name: str) -> None:
        if name in self.asked or self.answers.get(name) is not None:
            return
        question = self.method.question(name)
        if self.may_hold(question.applies):
            self.asked.add(name)
            if question.implied is not None:
                self.may_hold(question.implied.when)

    def may_hold(self, condition: Condition) -> bool:
        """Whether a condition may still hold; if it is undecided, its fields count as asked."""
        holds = condition.holds(self.answers)
        if holds is None:
            for name in condition.fields():
                self.ask(name)
        return holds is not False

    def metrics(self, rows: tuple[Row, ...]) -> frozenset[str]:
        """The metrics that the rows of a table may still recommend."""
        possible = [row for row in rows if row.possible(self.answers)]
        if len(possible) > 1:
            for name in {name for row in possible for name in row.when}:
                self.ask(name)
        return frozenset[str]().union(*(self._of_row(row, rows) for row in possible))

    def _of_row(self, row: Row, rows: tuple[Row, ...]) -> frozenset[str]:
        if row.fallback is not None:
            assumed = MappingProxyType({**self.answers, **row.fallback})
            return _Outlook(self.method, self.choices, assumed, self.asked).metrics(rows)
        entries = list(row.metrics or ())
        guides = [row.guide] if row.guide is not None else []
        if row.also is not None and self.may_hold(row.also.when):
            guides.append(row.also.guide)
        for name in guides:
            entries += [
                entry for option in self._options(self.method.guide(name)) for entry in option.metrics
            ]
        return frozenset(entry.metric for entry in entries if self._may_be_recommended(entry))

    def _may_be_recommended(self, entry: MetricEntry) -> bool:
        if not self.may_hold(entry.when):
            return False
        for source in entry.parameters.values():
            for name in fields_behind(source):
                self.value(name)
        return True

    def value(self, name: str) -> None:
        """Count a value as asked where it applies."""
        if self.may_hold(self.method.question(name).applies):
            self.ask(name)

    def _options(self, guide: Guide) -> list[Option]:
        """The options that a guide may still choose."""
        options = [guide.option(name) for name in self._names(guide)]
        for option in options:
            if option.then is not None:
                self._options(self.method.guide(option.then))
        return options

    def _names(self, guide: Guide) -> list[str]:
        if guide.id in self.choices:
            return list(self.choices[guide.id])
        names: list[str] = []
        for rule in guide.rules:
            if not self.may_hold(rule.when):
                continue
            if rule.choose is not None:
                names.append(rule.choose)
            if rule.like is not None:
                names += [option.id for option in self._options(self.method.guide(rule.like))]
            if rule.when.holds(self.answers):
                return names
        return names if guide.default is None else [*names, guide.default.option]
