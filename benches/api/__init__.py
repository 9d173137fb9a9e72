"""Benchmarks of the API: a real server, asked over TCP and over its Unix socket.

Reading order: `rows` (what is promised), `tasks` and `pushes` (what is done for each row), `server`
and `published` (by whom), `measure` (in which order), `memory` (what is counted while nothing is
timed), `figures` (what is made of it), `report` (how it is shown). What is not special to the API
is taken from `running`.
"""
