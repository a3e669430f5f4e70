"""The dialogue of the interview: it reads answers, goes back, and resolves contradictions."""

from collections.abc import Callable, Mapping

import click

from lifelong.commands.interview.screen import ACCEPTED_BY_YES, InterviewScreen
from lifelong_core.design import Contradiction, Interview, Proposal, Question
from lifelong_core.design.method.loader import load_method
from lifelong_core.design.problem_fingerprint import field_of
from lifelong_core.design.recommendation.document import GuideOutcome
from lifelong_core.values.errors import InvalidInputError


class InterviewSaved(Exception):  # noqa: N818 - no error
    """The user leaves the interview to continue it later."""


class Content(Exception):  # noqa: N818 - no error
    """The user accepts the result."""


class Dialogue:
    """One run of the interview; every answer is saved before the next question."""

    def __init__(
        self,
        screen: InterviewScreen,
        save: Callable[[Interview], None],
        proposals: Mapping[str, Proposal],
    ) -> None:
        self._screen = screen
        self._save = save
        self._reasons = {field: proposal.reason for field, proposal in proposals.items()}
        self._suggested: dict[str, object] = {field: item.value for field, item in proposals.items()}

    def conduct(self, interview: Interview) -> Interview:
        """Ask until no question, contradiction or choice is open and the user accepts the result.

        Raises:
            InterviewSaved: the user wants to continue later.
            click.Abort: the input ended, or Ctrl-C.
        """
        while True:
            match interview.asked:
                case Contradiction() as contradiction:
                    interview = self._resolve(interview, contradiction)
                case Question() as question:
                    interview = self._ask(interview, question)
                case GuideOutcome() as guide:
                    interview = self._decide(interview, guide)
                case None:
                    try:
                        interview = self._review(interview)
                    except Content:
                        return interview
            self._save(interview)

    def _ask(self, interview: Interview, question: Question, *, is_detour: bool = False) -> Interview:
        suggested, reason = self._suggestion(interview, question)
        self._screen.question(interview, question, suggested, reason)

        def understand(text: str) -> Interview:
            if question.field == "number_of_classes" and "," in text:
                named = interview.with_class_names([name.strip() for name in text.split(",")])
                self._screen.show_class_names(named)
                return named
            if suggested is not None and question.kind in ACCEPTED_BY_YES and text.casefold() in ("y", "yes"):
                return interview.answer(question.field, suggested)
            value = interview.parse_answer(question.field, text, as_shown=True)
            answered = interview.answer(question.field, value)
            self._screen.understood(answered, question)
            return answered

        hint = self._screen.hint(interview, question)
        if suggested is None:
            return self._prompt(interview, hint, understand, question=question, is_detour=is_detour)
        default = interview.answer(question.field, suggested)
        enter = self._screen.enter(interview, question, suggested, is_proposal=reason is not None)
        return self._prompt(
            interview,
            f"{enter}  |  {hint}",
            understand,
            enter=lambda: default,
            question=question,
            is_detour=is_detour,
        )

    def _suggestion(self, interview: Interview, question: Question) -> tuple[object, str | None]:
        """The earlier answer, the proposal from data, or the answer that others imply, with the reason."""
        field, proposal = question.field, interview.proposal
        if field in self._suggested or proposal is None or proposal.field != field:
            return self._suggested.get(field), self._reasons.get(field)
        return proposal.value, proposal.reason

    def _resolve(self, interview: Interview, contradiction: Contradiction) -> Interview:
        self._screen.contradiction(interview, contradiction)
        resolutions = contradiction.resolutions
        return self._prompt(
            interview,
            _numbers(len(resolutions)),
            lambda text: interview.with_answers(resolutions[_number(text, len(resolutions))].answers),
        )

    def _decide(self, interview: Interview, guide: GuideOutcome, *, is_detour: bool = False) -> Interview:
        self._screen.choice(guide)
        count = len(guide.options)

        def understand(text: str) -> Interview:
            named = {option.casefold(): option for option in guide.options}
            parts = [part.strip() for part in text.split(",")] if guide.several else [text]
            chosen = [named.get(part.casefold()) or guide.options[_number(part, count)] for part in parts]
            return interview.choose(guide.guide, chosen)

        if not guide.chosen:
            return self._prompt(interview, _numbers(count), understand, is_detour=is_detour)
        return self._prompt(
            interview,
            f"Enter: as it was  |  {_numbers(count)}",
            understand,
            enter=lambda: interview,
            is_detour=is_detour,
        )

    def _review(self, interview: Interview) -> Interview:
        """Print the result, and read what to change.

        Raises:
            Content: nothing is to be changed, or the input has ended.
        """
        self._screen.recommendation(interview)

        def done() -> Interview:
            raise Content

        def understand(text: str) -> Interview:
            if text.casefold() in ("y", "yes"):
                raise Content
            raise InvalidInputError(
                f"{text[:80]!r} is not understood.",
                hint="Enter or y ends; c FP2.6 asks a question again, c DG2.1 a choice.",
            )

        try:
            return self._prompt(
                interview, "Enter or y: done  |  c FP2.6: change that", understand, enter=done
            )
        except click.Abort:
            raise Content from None

    def _prompt(
        self,
        interview: Interview,
        hint: str,
        understand: Callable[[str], Interview],
        *,
        enter: Callable[[], Interview] | None = None,
        question: Question | None = None,
        is_detour: bool = False,
    ) -> Interview:
        """Read until there is an answer, or a command to go back, to change an answer, or to leave.

        Args:
            interview: the interview.
            hint: how to answer.
            understand: returns the interview with the typed answer.
            enter: returns the interview after Enter alone; None: an answer is required.
            question: the question; None: a choice, a contradiction or the result.
            is_detour: whether an answer is being changed, so that going back withdraws nothing.
        """
        names = _class_names(interview, question)
        while True:
            text = self._screen.read(hint, spelled_out=bool(names & {"a", "b", "c", "s"}))
            if question is not None and question.kind == "matrix":
                text = self._screen.read_table(text, interview.fingerprint.number_of_classes)
            command, _, item = text.partition(" ")
            try:
                match text:
                    case "":
                        if enter is not None:
                            return enter()
                        self._screen.say("Please answer, or type ? for an explanation.")
                    case _ if "\n" in text or text.casefold() in names:
                        return understand(text)
                    case "b" | "back":
                        return interview if is_detour else self._back(interview)
                    case "s" | "stop" | "save" | "quit" | "exit":
                        raise InterviewSaved
                    case "c" | "change":
                        self._screen.answers(interview)
                        self._screen.say("Say which of them, such as c FP2.6.")
                    case "a" | "answers":
                        self._screen.answers(interview)
                    case _ if command in ("c", "change") and item:
                        return self._change(interview, item)
                    case "?" | "help":
                        self._screen.explain(question)
                    case _:
                        return understand(text)
            except InvalidInputError as error:
                self._screen.problem(error)

    def _back(self, interview: Interview) -> Interview:
        last = interview.history[-1] if interview.history else None
        before = interview.back()
        if last is not None and hasattr(interview.fingerprint, last):
            self._propose_again(last, getattr(interview.fingerprint, last))
        return before

    def _change(self, interview: Interview, item: str) -> Interview:
        if load_method().has_guide(item):
            return self._decide_again(interview, item)
        question = load_method().question(field_of(item))
        self._propose_again(question.field, getattr(interview.fingerprint, question.field))
        return self._ask(interview, question, is_detour=True)

    def _propose_again(self, field: str, value: object) -> None:
        """Suggest an earlier answer, so that Enter repeats it."""
        if value is not None:
            self._suggested[field] = value
            self._reasons.pop(field, None)

    def _decide_again(self, interview: Interview, name: str) -> Interview:
        outcomes = {guide.guide: guide for guide in interview.guides}
        if name not in outcomes:
            raise InvalidInputError(
                f"{name} is no choice for these answers.",
                hint=f"These are: {', '.join(outcomes) or 'none'}.",
            )
        return self._decide(interview, outcomes[name], is_detour=True)


def _class_names(interview: Interview, question: Question | None) -> frozenset[str]:
    """The names of classes in lower case, which are answers here and not commands."""
    if question is None or question.kind != "class":
        return frozenset()
    return frozenset(name.casefold() for name in interview.class_names or ())


def _numbers(count: int) -> str:
    return f"1-{count}" if count > 1 else "1"


def _number(text: str, count: int) -> int:
    """The index of the option with the typed number."""
    if not text.isdecimal() or len(text) > 6 or not 1 <= int(text) <= count:
        raise InvalidInputError(f"expected a number from 1 to {count}, got {text[:80]!r}.")
    return int(text) - 1
