"""Adaptation: TODO table of contents."""
