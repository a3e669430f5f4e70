"""Which questions are still open for the answers and choices so far?"""

from lifelong_core.design.method.loader import load_method
from lifelong_core.design.method.schema import Question
from lifelong_core.design.problem_fingerprint import ProblemFingerprint
from lifelong_core.design.recommendation.recommend import GivenChoices, check_choices
from lifelong_core.design.recommendation.walk import walk


def next_questions(
    fingerprint: ProblemFingerprint, *, choices: GivenChoices | None = None
) -> tuple[Question, ...]:
    """The open questions; none if the fingerprint is complete.

    Each of them has to be answered for any answers to the others, and further ones may follow from the answers.
    Ask the first, then call again. Questions that affect nothing are not asked.

    Args:
        fingerprint: the answers so far.
        choices: guide -> option that a person chose.

    Raises:
        InvalidInputError: a choice that its guide does not offer.

    Examples:
        >>> asked = next_questions(ProblemFingerprint())
        >>> asked[0].question
        'How many classes can an image be given?'
        >>> [question.id for question in next_questions(ProblemFingerprint(number_of_classes=2))]
        ['FP5.1', 'FP4.3', 'FP5.3']
    """
    method = load_method()
    needed = walk(method, fingerprint, check_choices(method, choices)).needed
    return tuple(method.question(field) for field in needed)
