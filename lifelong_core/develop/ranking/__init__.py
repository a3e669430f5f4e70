"""From knowledge of other tasks to suggestions for this one.

- `rank_sources`: ranks the sources of one target; the entrance.
- `suggestion`: the result: suggestions with intervals and evidence, which is also put in sentences.
- `question`: the target and its possible sources; their expected gains with intervals.
- `source_distances`: distances to a target from fingerprints or publications.
- `features`: features of a pair of tasks.
- `standardised_gains`: the training data of a ranker; track records.
- `fitting`: fits the ranker; the only module that needs scikit-learn.
- `ranker`, `gain_model`: the fitted ranker, as numpy arrays.
"""
