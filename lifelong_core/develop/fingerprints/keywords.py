"""Keywords of a task's description: the fingerprint of the manual baseline."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field

from lifelong_core.develop.fingerprints.fingerprint import Arrays, Fingerprint, Header


class KeywordHeader(Header):
    """Header of a `KeywordFingerprint`."""

    keywords: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = Field(
        min_length=1, max_length=100
    )


@dataclass(frozen=True, eq=False)
class KeywordFingerprint(Fingerprint):
    """Keywords of a task (thesis, definition 5.18) in small letters, sorted, each once; it needs no image.

    Examples:
        >>> KeywordFingerprint(("Laparoscopy", "gynecology ", "laparoscopy")).keywords
        ('gynecology', 'laparoscopy')

    Raises:
        InvalidInputError: no keyword, one that is empty or too long, or too many.
    """

    kind: ClassVar[str] = "keywords"
    header_type: ClassVar[type[Header]] = KeywordHeader
    array_types: ClassVar[Mapping[str, str]] = {}

    keywords: tuple[str, ...]

    def __post_init__(self) -> None:
        """Bring the keywords into one form and check them."""
        plain = {keyword.strip().casefold() for keyword in self.keywords}
        object.__setattr__(self, "keywords", tuple(sorted(plain)))
        self._header()

    def _arrays(self) -> Arrays:
        return {}

    @classmethod
    def from_parts(cls, header: KeywordHeader, arrays: Any) -> Self:  # noqa: ARG003 # it has none
        """Return the fingerprint of a checked header and the arrays of the file."""
        return cls(header.keywords)
