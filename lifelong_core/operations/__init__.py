"""What people do: one function for each thing, declared once.

`operation` has the words of the declaration. Each module has the operations of one kind of thing; `design` and
`develop` have those of two loops, `administration` those of an installation. The HTTP routes, the calls of
`lifelong.Client` and most commands follow from them.
"""
