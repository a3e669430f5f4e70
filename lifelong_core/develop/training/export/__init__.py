"""The trained model as an ONNX graph and a preprocessing document that are checked against torch.

- `exported_model`: from timm's data config to the document of the service; the graph; do graph and torch give the
  same logits, also through the service's preprocessing?
- `onnx_classifier`: runs the graph, without torch.
"""
