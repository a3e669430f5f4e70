"""The answers of the API as types: the return annotation of an endpoint is the schema of its answer in OpenAPI.

    predictions   answers of /v1/predict and /v1/logits
    labels        labels, their results, and the history of a label
    probes        answer of /readyz
    registry      tasks, models, calibration sets, heads, pins
    calibration   the report of a calibration set
    history       environments, cycles, audit log, tokens, workers, groups
    design        interviews, recommendations, jobs
    training      trainings and their plans
    references    schemas of the models of `lifelong_core.design`, which a worker does not import at its start

They are typed dictionaries: answers are not validated or converted. pyright checks the functions that return them, and
the tests compare every received answer with the OpenAPI document. An endpoint that returns a `Response` names its
schema in `responses={200: {"model": ...}}`.
"""
