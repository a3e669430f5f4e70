"""From a problem fingerprint to recommended metrics.

- `recommend`: from a complete fingerprint to a recommendation
- `walk`, `progress`: one pass through the method; how many questions are answered and open
- `contradictions`: answers that exclude each other
- `document`, `explanation`: the recommendation as a value; its reasons, and metrics that carry similar information
- `stated_rule`: the decision rule that the answers ask for
- `wording`, `views`: terms and metrics as all surfaces show them; a recommendation as the API shows it
"""
