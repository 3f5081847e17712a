"""When an agent should look back before it acts: which purposes of recall a prompt calls for.

A prompt is judged by its words alone. Asking once too often costs a few lines of the prompt; what is not there is not
shown. So the rules are short, and miss rather than guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from recollect.policy.purposes import PURPOSES

MOST_AT_ONCE = 3
"""Of the purposes a prompt calls for; more would crowd out the prompt itself."""

_CALLS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
    for name, words in {
        "decision_memo": (
            r"approv(?:e|ed|al|als|ing)|authori[sz](?:e|ed|ation)|sign(?:ed)? off|permission|decid(?:e|ed|ing)|"
            r"decisions?|should (?:we|i)|may (?:we|i)|are we allowed|am i allowed|refunds?|discounts?|reject(?:ed|ion)?"
        ),
        "delegation": (
            r"delegat(?:e|ed|ing|ion)|assign(?:ed|ing)?|hand(?:ing)? (?:this |that |it )?(?:over|off)|"
            r"who (?:should|could|can) (?:do|handle|take|own)|which agent|whom"
        ),
        "content": (
            r"(?:write|draft|compose|rewrite|edit|plan|publish|post)\b.{0,40}\b(?:posts?|articles?|blog|newsletters?|"
            r"tweets?|threads?|captions?|headlines?|campaigns?|copy|ads?|emails?|announcements?|press release|scripts?|"
            r"landing page|videos?)"
        ),
        "tool_selection": (
            r"run|build|deploy|install|fix|debug|test|migrate|upgrade|convert|fetch|download|upload|query|scrape|"
            r"compile|set up|configure|execute|search|look up|backup|restore|restart|benchmark|profile|render"
        ),
    }.items()
}
"""By purpose, the words that call for it; in the order in which they are asked."""


def purposes_for(prompt: str, *, is_first: bool, has_tools: bool) -> Sequence[str]:
    """The purposes a prompt calls for. `is_first`: a conversation begins with it, and so a task. `has_tools`: the agent
    has a tool to choose.

    >>> purposes_for("Should we approve the refund?", is_first=False, has_tools=True)
    ['decision_memo']
    >>> purposes_for("Deploy the release", is_first=True, has_tools=True)
    ['task_intake', 'tool_selection']
    >>> purposes_for("Thank you!", is_first=False, has_tools=True)
    []
    """
    wanted = ["task_intake"] if is_first else []
    wanted += [name for name, words in _CALLS.items() if words.search(prompt)]
    if not has_tools and "tool_selection" in wanted:
        wanted.remove("tool_selection")
    assert set(wanted) <= set(PURPOSES)
    return wanted[:MOST_AT_ONCE]
