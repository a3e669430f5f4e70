"""Task fingerprints (thesis, section 5.1.1) as values, and the distances between them; numpy only."""
