"""ONNX graphs: checks before they are stored, and their execution.

- `classifier`, `trial`, `loader`: a loaded graph; its trial runs and warm-up; the thread that loads
- `sessions`, `runs`, `page_locked`: sessions; their runs, with bound buffers on a GPU; memory that a GPU reads directly
- `captures`, `graph_thread`: captured kernels beside other graphs of the process; the thread of a graph on a GPU
- `providers`, `provider_options`, `libraries`, `check_providers`: execution providers, and what those of a GPU need
- `check_graph`, `rules`, `image_values`: the process that checks uploads, its rules, values of the image as sizes
- `self_contained`, `half_precision`: weights of other files, conversion
- `run_limit`, `memory_limits`, `runtime_errors`: limits of time and memory; errors without values of the graph
"""
