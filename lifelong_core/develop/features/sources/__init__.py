"""Images in folders, tables and archives of any size.

- `opening`: the source of a path.
- `entry`: one image, before it is read.
- `folder`, `table`, `tar`, `zip_archive`: the kinds of sources; nothing is unpacked onto the disk.
- `combination`: several sources as one.
- `kinds`: what a file is.
- `limits`: limits of archives and files.
"""
