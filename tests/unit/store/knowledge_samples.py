"""Entries of a knowledge base for tests."""

from lifelong_core.develop.knowledge.entry import KnowledgeEntry, TaskCard, Training


def make_entry(name: str = "moles", *, samples: int = 100, sources: tuple[str, ...] = ()) -> KnowledgeEntry:
    """An entry with a transfer from each source."""
    card = TaskCard(name=name, classes=2, samples=samples, keywords=("skin",), modality="dermatoscopy")
    baseline = Training(performance={"BA": (0.7, 0.72, 0.71)})
    transfers = tuple(
        Training(scenario="pretraining", source=source, performance={"BA": (0.75, 0.8, 0.78)})
        for source in sources
    )
    return KnowledgeEntry(
        card=card, trainings=(baseline, *transfers), licence="CC0-1.0", contact="a@clinic.example"
    )
