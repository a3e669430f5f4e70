"""The interview that fills a problem fingerprint.

- `interview`: answers and decisions so far, the next question, the way back
- `answer_texts`, `class_order`: answers as text; answers about classes in another order
- `cost_builders`, `cost_rules`: costs of many classes from a rule or a pasted table; the rules as text
- `rule_wording`, `table_lines`: costs as a rule in words; is a table that is pasted line by line complete?
- `progress`, `contradictions`: open questions; answers that exclude each other
- `proposals`: answers that data suggests
- `views`, `class_names`, `wording`: what all surfaces show: answers in words, names of classes, terms
"""
