"""Performance: TODO table of contents."""
