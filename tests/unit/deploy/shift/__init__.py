"""Shift: TODO table of contents."""
