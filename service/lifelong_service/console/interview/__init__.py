"""Pages and forms of interviews, of their results, and of acceptance thresholds."""
