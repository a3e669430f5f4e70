"""Several sources as one, such as the shards of a data set."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from lifelong_core.develop.features.sources.entry import Entry, ImageSource, Opened


class CombinedSource:
    """Several sources, each under its own name; the names begin the paths of the entries.

    Args:
        sources: by name, each name once.
    """

    def __init__(self, sources: Sequence[tuple[str, ImageSource]]) -> None:
        self._sources = dict(sources)

    def entries(self) -> Iterator[Entry | None]:
        """The images of all sources; None for each other file."""
        for name, source in self._sources.items():
            for entry in source.entries():
                yield None if entry is None else replace(entry, path=f"{name}:{entry.path}")

    def read(self, wanted: Iterable[Entry]) -> Iterator[Opened]:
        """Open the files source by source."""
        parts: dict[str, dict[Entry, Entry]] = defaultdict(dict)
        for entry in wanted:
            name, _, path = entry.path.partition(":")
            parts[name][replace(entry, path=path)] = entry
        for name, source in self._sources.items():
            if name in parts:
                for entry, opened in source.read(parts[name]):
                    yield parts[name][entry], opened
