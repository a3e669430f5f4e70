"""The interview in the terminal: it asks, understands, goes back, and lets contradictions be mended."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click

from lifelong.commands.interview_screen import InterviewScreen

if TYPE_CHECKING:
    from lifelong_core.design import Contradiction, Interview, Proposal, Question
    from lifelong_core.design.recommendation import GuideOutcome


class Saved(Exception):  # noqa: N818 - no error: a person wants to go on later
    """The interview is to be left as it is."""


class Dialogue:
    """One conversation; every answer is saved before the next question is asked."""

    def __init__(
        self,
        screen: InterviewScreen,
        save: "Callable[[Interview], None]",
        proposals: "Mapping[str, Proposal]",
    ) -> None:
        self._screen = screen
        self._save = save
        self._reasons = {field: proposal.reason for field, proposal in proposals.items()}
        self._suggested: dict[str, object] = {field: item.value for field, item in proposals.items()}

    def conduct(self, interview: "Interview") -> "Interview":
        """Ask until nothing is left to be answered, mended or decided, and the person is content with the result.

        Raises:
            Saved: the person wants to go on later.
            click.Abort: the input ended, or Ctrl-C.
        """
        while True:
            if interview.contradictions:
                interview = self._mend(interview, interview.contradictions[0])
            elif interview.question is not None:
                interview = self._ask(interview, interview.question)
            elif interview.open_choices:
                interview = self._decide(interview, interview.open_choices[0])
            else:
                reviewed = self._review(interview)
                if reviewed == interview:
                    return interview
                interview = reviewed
            self._save(interview)

    def _ask(self, interview: "Interview", question: "Question") -> "Interview":
        suggested, reason = self._suggestion(interview, question)
        self._screen.question(interview, question, suggested, reason)

        def understand(text: str) -> "Interview":
            from lifelong_core.design import parse_answer

            if question.field == "number_of_classes" and "," in text:
                return interview.named([name.strip() for name in text.split(",")])
            value = parse_answer(question, text, class_names=interview.class_names)
            answered = interview.answer(question.field, value)
            self._screen.understood(answered, question)
            return answered

        hint = self._screen.hint(question)
        if suggested is None:
            return self._prompt(interview, hint, understand, question=question)
        default = interview.answer(question.field, suggested)
        enter = self._screen.enter(interview, question, suggested)
        return self._prompt(interview, f"{enter}  |  {hint}", understand, default, question)

    def _suggestion(self, interview: "Interview", question: "Question") -> tuple[object, str | None]:
        """What was answered before, what data say, or what follows from other answers, with the reason."""
        field, proposal = question.field, interview.proposal
        if field in self._suggested or proposal is None or proposal.field != field:
            return self._suggested.get(field), self._reasons.get(field)
        return proposal.value, proposal.reason

    def _mend(self, interview: "Interview", contradiction: "Contradiction") -> "Interview":
        self._screen.contradiction(interview, contradiction)
        mends = contradiction.mends
        return self._prompt(
            interview,
            _numbers(len(mends)),
            lambda text: interview.with_answers(mends[_number(text, len(mends))].answers),
        )

    def _decide(self, interview: "Interview", guide: "GuideOutcome") -> "Interview":
        self._screen.choice(guide)
        count = len(guide.options)

        def understand(text: str) -> "Interview":
            named = {option.casefold(): option for option in guide.options}
            parts = [part.strip() for part in text.split(",")] if guide.several else [text]
            chosen = [named.get(part.casefold()) or guide.options[_number(part, count)] for part in parts]
            return interview.choose(guide.guide, chosen)

        if not guide.chosen:
            return self._prompt(interview, _numbers(count), understand)
        return self._prompt(interview, f"Enter: as it was  |  {_numbers(count)}", understand, interview)

    def _review(self, interview: "Interview") -> "Interview":
        """The result; the same interview where nothing is to be changed, or where nobody is there to say so."""
        self._screen.recommendation(interview)

        def understand(text: str) -> "Interview":
            from lifelong_core.errors import InvalidInputError

            raise InvalidInputError(
                f"{text[:80]!r} is not understood.",
                mend="Enter ends; c FP2.6 asks a question again, c DG2.1 a choice.",
            )

        try:
            return self._prompt(interview, "Enter: done  |  c FP2.6: change that", understand, interview)
        except click.Abort:
            return interview

    def _prompt(
        self,
        interview: "Interview",
        hint: str,
        understand: "Callable[[str], Interview]",
        default: "Interview | None" = None,
        question: "Question | None" = None,
    ) -> "Interview":
        """Read until there is an answer, or a wish to go back, to change something, or to leave."""
        from lifelong_core.errors import InvalidInputError

        while True:
            text = self._screen.read(hint)
            command, _, item = text.partition(" ")
            try:
                match text:
                    case "":
                        if default is not None:
                            return default
                        self._screen.say("Please answer, or type ? for an explanation.")
                    case "b" | "back":
                        return self._back(interview)
                    case "s" | "save" | "quit" | "exit":
                        raise Saved
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

    def _back(self, interview: "Interview") -> "Interview":
        last = interview.history[-1] if interview.history else None
        before = interview.back()
        if last is not None and hasattr(interview.fingerprint, last):
            self._propose_again(last, getattr(interview.fingerprint, last))
        return before

    def _change(self, interview: "Interview", item: str) -> "Interview":
        from lifelong_core.design.fingerprint import field_of
        from lifelong_core.design.loading import the_method

        if item in {guide.id for guide in the_method().guides}:
            return self._decide_again(interview, item)
        question = the_method().question(field_of(item))
        self._propose_again(question.field, getattr(interview.fingerprint, question.field))
        return self._ask(interview, question)

    def _propose_again(self, field: str, value: object) -> None:
        """An answer that was given need not be typed again."""
        if value is not None:
            self._suggested[field] = value
            self._reasons.pop(field, None)

    def _decide_again(self, interview: "Interview", name: str) -> "Interview":
        from lifelong_core.errors import InvalidInputError

        outcomes = {item.guide: item for step in interview.recommendation().steps for item in step.guides}
        if name not in outcomes:
            raise InvalidInputError(
                f"{name} is no choice for these answers.",
                mend=f"These are: {', '.join(outcomes) or 'none'}.",
            )
        return self._decide(interview, outcomes[name])


def _numbers(count: int) -> str:
    return f"1-{count}" if count > 1 else "1"


def _number(text: str, count: int) -> int:
    """The index of what was picked by its number."""
    from lifelong_core.errors import InvalidInputError

    if not text.isdecimal() or not 1 <= int(text[:6]) <= count:
        raise InvalidInputError(f"expected a number from 1 to {count}, got {text[:80]!r}.")
    return int(text[:6]) - 1
