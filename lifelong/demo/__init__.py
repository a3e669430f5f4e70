"""The demo: a classifier of degraded digits is trained, served, shifted and mended, with real processes."""
