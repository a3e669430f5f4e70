"""Tests: TODO table of contents."""
