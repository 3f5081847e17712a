"""List what the image holds as a CycloneDX document: the packages of deploy/requirements.lock, and wellkept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tools.release_notes import read_version

ROOT = Path(__file__).parents[1]


def main(target: Path) -> None:
    """Write the list to a file. cyclonedx-py has to be installed beside this Python."""
    command = [str(Path(sys.executable).with_name("cyclonedx-py")), "requirements", "--pyproject", "pyproject.toml"]
    command += ["--output-reproducible", "--output-format", "JSON", "deploy/requirements.lock"]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    listed = json.loads(done.stdout)
    # The project's file leaves the version to the build, so cyclonedx-py does not know it.
    listed["metadata"]["component"]["version"] = read_version()
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(listed, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
