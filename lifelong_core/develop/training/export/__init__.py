"""The trained model as an ONNX graph and a preprocessing document that are checked against torch.

- `preprocessing`: from timm's data config to the document of the service.
- `onnx_export`: the graph; `onnx_classifier`: runs it.
- `parity`: do graph and torch give the same logits, also through the service's preprocessing?
"""
