"""Benchmarks of starting and running: sandboxes, commands and sessions beside `bwrap` and docker.

Reading order: `rows` (what is promised), `tasks` (what is done for each row), `driver` and `docker`
(by whom), `measure` (in which order), `memory` (what is counted while nothing is timed), `figures`
(what is made of it), `report` and `chart` (how it is shown).
"""
