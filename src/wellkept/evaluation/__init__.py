"""Evaluation of recall on labelled memories and questions, through the public API."""

from wellkept.evaluation.measure import Evaluation, ReplayOptions, Rest, evaluate
from wellkept.evaluation.scores import Scores, Usage
from wellkept.evaluation.sets import LabelledMemory, LabelledQuestion, LabelledSet, read_sets

__all__ = [
    "Evaluation",
    "LabelledMemory",
    "LabelledQuestion",
    "LabelledSet",
    "ReplayOptions",
    "Rest",
    "Scores",
    "Usage",
    "evaluate",
    "read_sets",
]
