"""The develop loop: knowledge base, trainings, evaluations, and trials of new models."""
