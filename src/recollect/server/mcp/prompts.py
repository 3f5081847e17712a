"""Prompts: what is remembered before something is decided, for the purposes of `policy.recall.purposes`.

They recall, so they are offered with the set `recall`.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcp.types import GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage, TextContent

from recollect.errors import Invalid
from recollect.policy.prompt.escaping import wrapped
from recollect.policy.recall.purposes import PURPOSES, Purpose
from recollect.server.mcp.offer import Offer
from recollect.tools.bounds import shortened

SET = "recall"
QUESTION = "question"
NOTHING = "Nothing is remembered about this."


def listed(offer: Offer) -> ListPromptsResult:
    """One for each purpose."""
    return ListPromptsResult(prompts=[_prompt(each) for each in PURPOSES.values()] if SET in offer.sets else [])


def get(offer: Offer, name: str, arguments: Mapping[str, str]) -> GetPromptResult:
    """What is recalled for a purpose, and the question behind it, as one message.

    Raises: Invalid; StoreError when nothing could answer.
    """
    known = PURPOSES if SET in offer.sets else {}
    if name not in known:
        raise Invalid(f"Unknown prompt: {name[:60]!r}; the prompts are {', '.join(known) or 'none'}.")
    unknown = arguments.keys() - {QUESTION}
    if unknown or not arguments.get(QUESTION, "").strip():
        raise Invalid(f"The prompt {name} takes one argument, {QUESTION!r}: what you are about to do or decide.")
    purpose, question = known[name], arguments[QUESTION].strip()
    block = offer.memory.recall_block(question, purpose=name)
    recalled = f"## {purpose.heading}\n{NOTHING}" if block is None else wrapped(shortened(block), "purpose")
    text = TextContent(type="text", text=f"{recalled}\n\n{question}")
    return GetPromptResult(description=purpose.heading, messages=[PromptMessage(role="user", content=text)])


def _prompt(purpose: Purpose) -> Prompt:
    question = PromptArgument(name=QUESTION, description="What you are about to do or decide.", required=True)
    return Prompt(
        name=purpose.name,
        title=purpose.heading,
        description=f"{purpose.heading}: what is remembered about a question, and the question.",
        arguments=[question],
    )
