"""Commands that operate an installation."""
