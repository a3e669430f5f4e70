"""The pictures of the documentation: `python -m tests.pictures` makes them from real processes.

`fleet` is an installation with twenty hospitals, of which some shift; `dashboards` draws previews of the dashboards,
`console` takes all pages of the console, over what `filling` adds.
"""
