"""The demo: a classifier of degraded digits is trained, served, shifted and corrected, with real processes."""
