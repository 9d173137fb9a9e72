"""The blocking classes, made from those of `_async`; only `_io` is written by hand."""
