"""Average the vectors of questions of all families, and write the vector of a typical question.

What all questions have in common says nothing about what one asks for, and lifts memories that are like any question.
So recall takes it off the vector of a question before it compares memories with it.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
from records import EMBEDDER, read_conversations

from wellkept.providers import minilm


def main() -> None:
    """Every family counts the same, however many questions it has."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", type=Path, action="append", required=True, metavar="FILE")
    parser.add_argument("--pairs", type=Path, nargs="*", default=[], metavar="FILE")
    options = parser.parse_args()
    asked = defaultdict[str, set[str]](set)
    for path in options.family:
        for conversation in read_conversations(path):
            asked[path.name.partition("_")[0]].update(each["query"] for each in conversation["questions"])
    for path in options.pairs:
        asked["pairs"].update(json.loads(line)["question"] for line in path.read_text("utf-8").split("\n") if line)
    means = [EMBEDDER.embed(sorted(questions)).mean(0) for questions in asked.values()]
    output = Path(minilm.__file__).with_name(minilm.TYPICAL_QUESTION_FILE)
    output.write_bytes(np.mean(means, 0).astype("<f2").tobytes())
    print({family: len(questions) for family, questions in asked.items()}, "->", output)


if __name__ == "__main__":
    main()
