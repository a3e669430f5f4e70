"""Limits of use, per client and in total.

- `sharing`: the rule for fair shares of a bounded resource.
- `token_bucket`: a rate with a burst.
- `token_limits`: requests, rows and simultaneous requests of each token.
- `body_budget`: bytes of request bodies that are held at once.
- `login_limits`: failed logins to the console.
- `open_streams`: streams of events that a worker keeps open.
- `service_rate`: measured rate of the micro-batcher.
"""
