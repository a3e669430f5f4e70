"""Settings and what follows from them.

- `settings`: the one typed settings class; `setting_fields`, `policy_fields`: the fields of settings and policies
- `notification_fields`: the channels of notifications
- `monitor_settings`: the settings that all monitors of an installation share
- `serving_plan`, `gpu`: workers, threads and memory of this machine; how graphs use a GPU
- `image_roots`: folders whose images jobs may read
- `plausibility`: settings that are legal, but nearly always a mistake
"""
