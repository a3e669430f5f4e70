"""Pages of the knowledge base: its tasks, and what to transfer from them.

- `map_layout`: places of points and of their labels in a drawing.
"""
