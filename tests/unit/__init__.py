"""Unit: TODO table of contents."""
