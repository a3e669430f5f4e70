"""What is stored or shown: one module for each kind of thing, and each field declared once, with its meaning.

Rows of tables, JSON documents, the schemas of the API and the types that code uses follow from these classes:
`entity` has their base class; `design` and `develop` have the things of two loops.
"""
