"""The clients of a worker: their identity, and the share of each.

- `addresses`: addresses and networks of clients
- `authentication`: bearer tokens; look-ups of unknown tokens and sessions in the database
- `console_sessions`: sessions of the console
- `limits`: requests, rows, streams and simultaneous requests of each token; failed logins of each address
- `sharing`: fair shares of a bounded resource, as the bytes of bodies that are held at once; rates with bursts
- `refused_requests`: refusals for the audit log
"""
