"""Evaluation of recall on labelled memories and questions, through the public API."""

from wellkept.evaluation.files import read_sets
from wellkept.evaluation.measure import Evaluation, evaluate
from wellkept.evaluation.replay import ReplayOptions, Rest
from wellkept.evaluation.scores import Scores, Usage
from wellkept.evaluation.sets import LabelledMemory, LabelledQuestion, LabelledSet

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
