"""What people do with an installation: its environments, processes, jobs, tokens, audit log and groups."""
