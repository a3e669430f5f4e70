"""ONNX graphs: checks before they are stored, and their execution.

- `classifier`, `loader`: a loaded graph; how it is loaded
- `trial`, `trial_images`: trial runs and warm-up
- `sessions`, `runs`, `page_locked`: sessions; their runs, with bound buffers on a GPU; memory that a GPU reads directly
- `captures`: captured kernels beside other graphs of the process; the thread of a graph on a GPU
- `providers`, `provider_options`, `libraries`: execution providers, and what those of a GPU need
- `check_graph`, `rules`, `image_values`: the process that checks uploads, its rules, values of the image as sizes
- `self_contained`, `half_precision`: weights of other files, conversion
- `limits`, `runtime_errors`: limits of time and memory; errors without values of the graph
"""
