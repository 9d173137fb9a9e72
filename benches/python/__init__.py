"""Benchmarks of the Python SDK: embedded, over TCP, and beside the published client.

Reading order: `rows` (what is promised), `tasks` and `trees` (what is done for each row), `worker`
and `one_sandbox` (the programs that do it, in an interpreter that has the clients), `site` (where),
`measure` (in which order), `report` (how it is shown). What is not special to Python is taken from
`running` and `api`.
"""
