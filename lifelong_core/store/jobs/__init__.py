"""Jobs: long work that a monitor runs.

- `jobs`: submit, claim, finish
- `records`: their value types
- `rows`: statements and values of their table
"""
