"""One agent's view of the store. Each group of its verbs is a module; together they are `AgentMemory`."""

from __future__ import annotations

from recollect.agent_memory.capturing import Capturing
from recollect.agent_memory.consolidation import Consolidation
from recollect.agent_memory.context import Contexts
from recollect.agent_memory.details import AgentDetails
from recollect.agent_memory.knowledge import Knowledge
from recollect.agent_memory.prompts import Prompts
from recollect.agent_memory.records import ANY_STATE, MAX_PAGE, PAGE, SEARCH_LIMIT, Records
from recollect.agent_memory.transcripts import Transcripts

__all__ = ["ANY_STATE", "MAX_PAGE", "PAGE", "SEARCH_LIMIT", "AgentMemory"]


class AgentMemory(Records, Transcripts, Prompts, Contexts, AgentDetails, Capturing, Knowledge, Consolidation):
    """One agent's memory: its own records, and nobody else's."""
