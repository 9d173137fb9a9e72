"""The asyncio classes, and the source of the blocking ones: `generate.py` makes `_sync` from them.
What cannot be made so is in `_io`, which both have."""
