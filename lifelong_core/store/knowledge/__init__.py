"""The knowledge base: what is known of tasks, here and at other institutions.

- `knowledge`: reads and changes entries and fingerprints
- `changes`: statements of one change, within its transaction
- `loading`: the whole knowledge base as one value, read again when it changes
- `exchange`: signed bundles into the knowledge base, and out of it
- `signers`: institutions whose bundles are imported
- `rankers`: the fitted ranker, and the request to fit it again
- `neighbours`: source tasks for a task, ranked
"""
