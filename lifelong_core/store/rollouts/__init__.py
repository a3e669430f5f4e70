"""The promoted model of a task over time, and the model that is tried beside it.

- `history`: the history of promotions, within a transaction; records from rows
- `checked_promotion`: promotes a model, unless something stands against it
- `promotions`: lists promotions and rolls back
- `rollouts`: starts, changes and ends trials
- `candidate_heads`: heads of a candidate for the environments of the promoted model
- `trials`: the checked start of a trial, with these heads; its populations side by side
"""
