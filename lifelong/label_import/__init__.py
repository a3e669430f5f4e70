"""Import of labels from a CSV file of any length.

- `lines`: bytes to lines of bounded length
- `rows`: lines to labels, or to rows that are rejected with a reason
- `sending`: labels to `/v1/feedback`, in batches
- `outcome`: the counts, and the file of rejected rows
"""
