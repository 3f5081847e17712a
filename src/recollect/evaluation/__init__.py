"""Evaluation of recall on labelled memories and questions, through the public API."""

from recollect.evaluation.files import read_sets
from recollect.evaluation.measure import Evaluation, evaluate
from recollect.evaluation.replay import ReplayOptions, Rest
from recollect.evaluation.scores import Scores
from recollect.evaluation.sets import LabelledMemory, LabelledQuestion, LabelledSet
from recollect.policy.recall.evaluation import Usage

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
