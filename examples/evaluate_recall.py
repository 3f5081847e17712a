"""Measure how well recall answers your own questions, with the settings as they are and with others.

python evaluate_recall.py questions.jsonl

A line of the file is a memory or a question: {"id": "t1", "memory": "Lena leads billing"} and
{"question": "Who leads billing?", "expected": ["t1"]}; `"expected": []` says that all hits should be weak.
"""

import sys
from pathlib import Path

from wellkept import Settings
from wellkept.evaluation import evaluate, read_sets

SAMPLE = """\
{"id": "t1", "memory": "Lena leads the billing team", "kind": "note"}
{"id": "t2", "memory": "The release train leaves on Thursday", "kind": "note"}
{"id": "t3", "memory": "Invoices are sent on the first of the month", "kind": "note"}
{"question": "Who leads billing?", "expected": ["t1"]}
{"question": "When are invoices sent?", "expected": ["t3"]}
{"question": "On which day do we release?", "expected": ["t2"]}
{"question": "Who won the cup final?", "expected": []}
"""
COMPARED = {
    "as configured": Settings.load(),
    "words alone": Settings.load(flags={"embedder": "off"}),
}


def main(path):
    print(f"{'':16}{'recall@5':>10}{'MRR':>8}{'no hit':>8}{'p50 ms':>8}")
    for name, settings in COMPARED.items():
        result = evaluate(read_sets(path), settings)
        scores = result.scores[0]
        silent = next((each.no_hit for each in result.scores if each.no_hit is not None), None)
        figures = (scores.turns["recall@5"].mean, scores.turns["mrr"].mean, silent.mean if silent else float("nan"))
        print(f"{name:16}{figures[0]:10.3f}{figures[1]:8.3f}{figures[2]:8.3f}{result.recall_p50_ms:8.1f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        sample = Path("questions.jsonl")
        sample.write_text(SAMPLE, "utf-8")
        print(f"No file given, so this is the sample written to {sample}.")
        main(sample)
