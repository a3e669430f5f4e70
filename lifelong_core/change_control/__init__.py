"""Documents for regulators and quality managers: the change-control dossier and the periodic report of a population.

- `pages`: from what an operation answers to a self-contained HTML page; equal answers give equal pages
- `charts`: the charts of these pages
- `pdf`: from such a page to PDF (extra `pdf`)
"""
