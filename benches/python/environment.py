"""An interpreter with what the SDK needs and the published client, and the variables for both."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, Optional

from fs import processes
from fs.measure import progress
from running.measure import Results

ROOT = Path(__file__).resolve().parents[2]
SDK = ROOT / "sdk" / "python"
# The one of the SDK's tests, which pin everything that is needed here too.
ENVIRONMENT = ROOT / "target" / "venv-sdk"
PINNED = SDK / "tests" / "requirements.txt"


def interpreter(results: Results) -> Optional[Path]:
    """Installed when it is first needed; it then stays."""
    progress("looking for Python with the clients")
    try:
        processes.run(["sh", str(ROOT / "scripts" / "venv.sh"), str(ENVIRONMENT), str(PINNED)])
    except processes.CommandFailed as error:
        progress(f"Python: skipped, {error}")
        results.unavailable["python"] = f"what it needs could not be installed: {error}"
        return None
    return ENVIRONMENT / "bin" / "python"


def variables(binary: Path, scratch: Path) -> Dict[str, str]:
    """Whatever is kept is kept in RAM, compiled modules included; no server is named."""
    return {
        "PYTHONPATH": str(SDK),
        "PYTHONPYCACHEPREFIX": str(scratch / "bytecode"),
        "PYTHONDONTWRITEBYTECODE": "",
        "XDG_CACHE_HOME": str(scratch / "cache"),
        "RINGFENCE_BINARY": str(binary),
        "RINGFENCE_STATE": str(scratch / "state"),
        "RINGFENCE_ENDPOINT": "",
        "RINGFENCE_TOKEN": "",
    }
