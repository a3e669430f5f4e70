"""The knowledge base: what is known of tasks, here and at other institutions.

- `knowledge`: reads and changes entries and fingerprints
- `changes`: statements of one change, within its transaction
- `rankers`: the fitted ranker, and the request to fit it again
- `signers`: institutions whose bundles are imported
- `records`: their value types
"""
