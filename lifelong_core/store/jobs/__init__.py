"""Jobs: long work that a monitor runs.

- `jobs`: submit, claim, cancel, finish, delete
- `following`: read jobs; progress, log lines and checkpoints of their work
- `transitions`: how jobs begin and end
- `rows`: statements and values of their table; changes that only the holder of a job may make
"""
