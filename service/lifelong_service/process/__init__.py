"""The processes of the service.

- `launch`: start and its checks
- `supervisor`, `signals`: the supervisor of the workers; SIGTERM and SIGINT
- `metric_files`: files through which the workers share their metrics
- `confinement`: limits that a process sets itself
- `spool_folder`: write test of the spool folder
"""
