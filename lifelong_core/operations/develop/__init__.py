"""The develop loop: knowledge base, plans of retrainings, trainings and their evaluations."""
