"""The answers of the API as types: the return annotation of an endpoint is the schema of its answer in OpenAPI.

    predictions   answers of /v1/predict, /v1/logits and /v1/feedback
    probes        answer of /readyz
    registry      tasks, models, calibration sets, heads, pins
    calibration   the report of a calibration set
    history       environments, cycles, audit log, tokens, workers, groups
    design        interviews, recommendations, jobs
    references    schemas of the models of `lifelong_core.design`, which a worker does not import at its start

They are typed dictionaries: nothing is checked or converted when an answer is sent. pyright compares them with the
functions that make the answers, and the tests compare every answer that they get with the OpenAPI document. An endpoint
that returns a `Response` names its schema itself: `responses={200: {"model": ...}}`.
"""
