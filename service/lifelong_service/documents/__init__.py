"""Records as the JSON documents of answers.

- `knowledge`: entries of the knowledge base
"""
