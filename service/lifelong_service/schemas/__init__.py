"""The answers of the API as types: the return annotation of an endpoint is the schema of its answer in OpenAPI.

    labels        labels, their results, and the history of a label
    knowledge     entries, fingerprints and the ranker
    training      trainings and their plans

They are typed dictionaries: answers are not validated or converted. pyright checks the functions that return them, and
the tests compare every received answer with the OpenAPI document. An endpoint that returns a `Response` names its
schema in `responses={200: {"model": ...}}`.
"""
