"""HTTP: limits, authentication, errors.

- `guard`, `authentication`, `client_addresses`, `console_sessions`: authentication and access rules
- `head_checks`: ambiguous heads
- `bodies`, `json_structure`, `labelled_bodies`, `parameters`: reading requests within limits
- `protocol`, `connections`, `turns`, `middleware`: connections; the order of requests; middleware of each request
- `fixed_documents`: documents that are the same for everybody
- `event_stream`: server-sent events
- `errors`, `openapi`: error bodies; the description of the API
- `refused_requests`, `memory_release`: refusals for the audit log; memory after large bodies
"""
