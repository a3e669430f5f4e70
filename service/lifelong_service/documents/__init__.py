"""Records as the JSON documents of answers.

- `design`: interviews and recommendations
- `knowledge`: entries of the knowledge base
"""
