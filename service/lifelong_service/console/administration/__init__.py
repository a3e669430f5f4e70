"""Pages of an installation: tokens, doctor, audit log, documents of change control."""
