"""The programs in examples/ that need a framework, and the notebook."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.documentation import ROOT, run_python

EXAMPLES = ROOT / "examples"


def test_the_agent_remembers_its_user_in_another_thread(tmp_path: Path) -> None:
    printed = run_python([str(EXAMPLES / "langgraph_agent.py")], tmp_path, {})

    assert printed.splitlines() == [
        "monday: I have noted it.",
        "tuesday: A vegetarian place in Oslo.",
        "recalled on Tuesday: ['I live in Oslo and I only eat vegetarian food', 'I have noted it.']",
    ]


@pytest.mark.slow
def test_the_notebook_runs_and_draws_its_plots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    notebook = nbformat.read(EXAMPLES / "recall.ipynb", as_version=4)

    NotebookClient(notebook, timeout=200, resources={"metadata": {"path": str(tmp_path)}}).execute()

    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert sum("image/png" in output.get("data", ()) for output in outputs) == 4
