"""The serving path beside its peers, on one machine in one run: `python -m benchmarks.serving`.

- `__main__`: options, the cases in turn, tables, one JSON object
- `workloads`: the two classifiers, their images, and an installation that serves one
- `classification`: what the peers do with an image; runs in their processes
- `typed_peer`, `plain_peer`: the peers: BentoML's image API; uvicorn with Starlette and our micro-batcher
- `servers`: ours and the peers as processes; the check that they answer alike
- `wrk`: load by the program wrk
- `rounds`: arms by turns, medians, ratios of the same round
- `overhead`, `compute`, `logits`, `start`: the cases
- `profile`, `layers`: a profile of a worker under load; its shares by layer
- `goals`: the goals beside the figures
"""
