"""Knowledge of other tasks: their trainings, performances and measured transfers.

- `entry`: one task: its card and its trainings; measured transfers between tasks as arrays.
- `transferable`: architecture and policy of an entry that another task can be trained with.
- `knowledge_base`: all tasks, and their fingerprints, as one value.
- `assembly`: the arrays of measured transfers from the entries of a knowledge base, and back.
- `stored_fingerprints`: reads the stored fingerprints that a comparison needs.
- `transfer_folder`: reads published outcomes (`transfer_*.npz`, `tasks_*.csv`).
- `bundle`, `signing`: signed files with which institutions exchange knowledge.
- `knowledge_index`, `query_index`, `index_file`: all bKLD distances to one target as one product over a mapped file.
- `task_map`: distances between some tasks; the tasks in the plane.
"""
