"""The API on the wire: its messages (`v1`) and methods (`methods`), both generated."""
