"""Deploy: TODO table of contents."""
