"""The kinds of jobs: one module for each, whose `work` does it; a module is imported in the subprocess of a job only.

- `cycle`, `replay`, `labelling_plan`, `validate`, `compare`, `fingerprint`, `rank`, `retrain`, `search_augmentation`
- `images`, `model_facts`, `kept_test_set`: images, registered models and test sets that several kinds use
- `promotion_reports`, `localization`: two models on the same cases
- `after_training`: the steps after a training
"""
