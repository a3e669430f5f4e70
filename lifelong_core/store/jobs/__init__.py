"""Jobs: long work that a monitor does.

- `jobs`: submit, claim, finish
- `rows`: statements and values of their table
"""
