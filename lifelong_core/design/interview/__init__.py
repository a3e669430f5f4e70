"""The interview that fills a problem fingerprint.

- `interview`: answers and choices so far, the stage, the way back
- `next_questions`: the open questions
- `answer_texts`, `views`: typed answers as values; answers and questions as text
- `class_names`: names of classes in texts; answers about classes in another order
- `cost_rules`, `cost_tables`, `cost_builders`: costs from a text: a rule or a table; the costs themselves
- `proposals`: answers that data suggest
"""
