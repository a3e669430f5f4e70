"""Images in folders, tables and archives of any size.

- `opening`: the source of a path; several sources as one.
- `entry`: one image, before it is read; what a file is.
- `folder`, `tar_files`, `zip_files`: each kind of source; archives are not unpacked onto the disk.
- `limits`: limits of archives and files.
"""
