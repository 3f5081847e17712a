"""Record the corpus anew: python -m tests.corpus record [part ...]"""

from __future__ import annotations

import argparse
import os

os.environ |= {"WELLKEPT_RECALL_DEADLINE": "60"}

from tests.corpus.parts import PARTS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    parser.add_argument("command", choices=["record"])
    parser.add_argument("part", nargs="*", help="such as rest_agents or openapi; all if none is named")
    wanted = parser.parse_args()
    for name in wanted.part or PARTS:
        print(f"{name}: {PARTS[name].record()}", flush=True)


if __name__ == "__main__":
    main()
