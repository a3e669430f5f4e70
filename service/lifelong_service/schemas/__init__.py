"""The answers of handwritten endpoints as types: the return annotation of an endpoint is their schema in OpenAPI.

- `labels`: labels and their results

They are typed dictionaries: answers are not validated or converted. pyright checks the functions that return them, and
the tests compare every received answer with the OpenAPI document. An endpoint that returns a `Response` names its
schema in `responses={200: {"model": ...}}`.
"""
