"""Images of a task for training: read, split without leaks, and batched."""
