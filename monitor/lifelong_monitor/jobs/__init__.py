"""Jobs: work that takes longer than a request may, run one at a time as subprocesses of a monitor, beside its cycles.

- `kinds`: for each kind of job, the work in its subprocess
- `running`: claims, subprocesses, limits and results

The runner claims a job and watches its subprocess; only the runner, which holds the claim, finishes the job. The
subprocess reads its inputs, stores artifacts, and sends its outcome through a pipe. It does the work itself
(`__main__`), or submits it to a Ray cluster (`running.on_ray`).
"""
