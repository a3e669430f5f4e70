"""From a problem fingerprint to recommended metrics.

- `engine`: `recommend` and `next_questions`
- `walk`, `progress`: one pass through the method; open questions
- `contradictions`: answers that exclude each other
- `document`, `explanation`: the recommendation as a value; its reasons, and metrics that carry similar information
- `stated_rule`: the decision rule that the answers ask for
- `wording`, `views`: terms and metrics as all surfaces show them; a recommendation as the API shows it
"""
