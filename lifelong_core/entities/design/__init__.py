"""The design loop: interviews and their recommendations."""
