"""Connections and the HTTP protocol: the part below the application.

- `server`: lets uvicorn call our application
- `protocol`, `refusals`: one connection with its limits; answers to what it refuses
- `connections`, `turns`: all connections of a worker; the order in which requests start
- `joined_writes`: head and body of an answer in one write
- `root_path`: the path of a reverse proxy
- `responses`: fixed documents, server-sent events
"""
