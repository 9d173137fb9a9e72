"""What can be called, as a table: small uses of everything public, that check what comes of it.

A use gets `it`: `it.client`, `it.sandbox` (running, preset `full-access`) and `it.Sandbox`, blocking or
asyncio, behind one face; and `it.root`, the directory that the sandbox stands on.
"""

USES = []


def uses(kind, names):
    """Puts a function into the table: it uses these members of this class."""
    def listed(function):
        named = {f"{kind}.{name}" for name in names.split()}
        function.exercised = named | getattr(function, "exercised", set())
        if function not in USES:
            USES.append(function)
        return function
    return listed


def exercised():
    return set().union(*(function.exercised for function in USES))
