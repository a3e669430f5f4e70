"""Bodies of requests: limits of their size and pace, and readers.

- `limits`: stops a body at its largest size
- `strict_request`: a request of the framework whose body follows our rules
- `json_documents`: JSON within structural limits
- `parameters`: checks of names and texts in queries and forms
- `parsing`: the thread that parses large bodies; release of memory after them
- `uploads`: archives, streamed to a file
"""
