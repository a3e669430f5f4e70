"""From scores of patches to the score of an image (multiple instance learning)."""
