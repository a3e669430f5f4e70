"""Jobs: long work that a monitor runs.

- `jobs`: submit, claim, cancel, finish, delete
- `following`: read jobs; progress, log lines and checkpoints of their work
- `job_log`, `checkpoints`: lines for people; states from which the next attempt goes on
- `submission`, `ending`: how jobs begin and end
- `fencing`: changes that only the holder of a job may make
- `records`: their value types
- `rows`: statements and values of their table
"""
