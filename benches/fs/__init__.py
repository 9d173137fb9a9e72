"""Filesystem benchmarks: ringfence and its peers side by side on one ext4 image in RAM.

Reading order: `rows` (what is promised), `workloads` (what is done for each row),
`variants` (on what), `measure` (in which order), `figures` (what is made of the times),
`report` and `chart` (how it is shown). `disk`, `tree`, `projects` and `policies` make the material.
"""
