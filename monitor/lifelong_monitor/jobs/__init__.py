"""Jobs: work that takes longer than a request may, run one at a time as subprocesses of a monitor, beside its cycles.

The runner claims a job and watches over its subprocess; only the runner, which holds the claim, finishes the job. The
subprocess reads what it needs, keeps artifacts, and says what came out through a pipe. It does the work itself
(`__main__`), or has a Ray cluster do it (`on_ray`).
"""
