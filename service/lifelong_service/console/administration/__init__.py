"""Pages of an installation: tokens, doctor, audit log."""
