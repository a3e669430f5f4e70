"""What is known of other tasks: how well they were solved, and what helped.

- `entry`: one task: its card and its trainings.
- `transfer_outcomes`: measured transfers between tasks as arrays, for ranking and evaluation.
"""
