"""Images in folders, tables and archives of any size.

- `opening`: the source of a path; several sources as one.
- `entry`: one image, before it is read; what a file is.
- `folder`, `archives`: folders and tables, tar and zip files; nothing is unpacked onto the disk.
- `limits`: limits of archives and files.
"""
