"""The trained model as an ONNX graph and a preprocessing document that are checked against torch."""
