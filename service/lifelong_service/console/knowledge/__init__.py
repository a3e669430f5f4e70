"""Pages of the knowledge base: its tasks, and what to transfer from them.

- `pages`, `entry_views`: the list of tasks and the page of a task
- `neighbours`, `neighbour_views`: the page of what to transfer to a task
- `task_map`, `map_layout`: the map of tasks; places of points and of their labels in a drawing
"""
