"""Access to routes, and the answers to requests that are refused or fail.

- `access`: the access rule of a route; the caller of a request
- `route`: `GuardedRoute` checks token, content type and size of the body before an endpoint
- `hot_paths`: calls the endpoints of predictions without the framework
- `middleware`, `request_counts`: time limit, name of the worker, ambiguous heads, unexpected errors; metrics
- `traced_requests`: a span around each request, where tracing is on
- `errors`: errors as answers
"""
