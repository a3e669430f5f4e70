"""Import of labels from a CSV file of any length.

- `rows`: lines of bounded length to labels, or to rows that are rejected with a reason
- `sending`: labels to `/v1/feedback`, in batches; the counts, and the file of rejected rows
"""
