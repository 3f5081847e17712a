"""What wellkept promises, sentence by sentence. Tests say which promise they prove with `@pytest.mark.proves("N1")`.

A promise without a test fails the build, unless it stands in `NOT_YET`; a promise in `NOT_YET` that a test claims to
prove fails it too, so the list can only tell the truth.
"""

from __future__ import annotations

PROMISES = {
    "T1": "A turn is stored as the user's prompt and the final answer, nothing else.",
    "T2": "The schema is made and upgraded at start on both engines, also when two servers start at once.",
    "T3": "One model call folds the oldest turns into the summary; summary and newer turns come back.",
    "T4": "Summarising is off by default and set by file, environment or flag.",
    "T5": "When the model fails, the old summary stays and the whole transcript is returned.",
    "T6": "Two runs of one session lose no turn and fold none twice.",
    "T7": "References inside folded turns survive the summary.",
    "T8": "Sessions and messages can be read and paged, and survive a restart.",
    "T9": "Every face uses the same transcript component.",
    "N1": "A note has an id that is never reused, 1 to 500 characters, a scope, up to 5 tags and a time.",
    "N2": "memory_store, memory_search and memory_delete answer as described.",
    "N3": "Text that holds a secret is refused before anything is written.",
    "N4": "At most max_total notes are kept; the oldest make room in the same transaction.",
    "N5": "Notes can live in a JSONL file that several programs use at once and a crash does not damage.",
    "N6": "Notes are injected by relevance, recency or both, within a budget, and cannot forge a line.",
    "N7": "Settings come from agent.json, and guidance on when to store is shipped.",
    "J1": "A journal fades after seven days and stays listed; core is permanent; both hold 1 to 10,000 characters.",
    "J2": "save_to_journal and save_to_core answer as described.",
    "J3": "The private-memory block has its headings, dates and order, and is absent when empty.",
    "J4": "Agents count their memories and can be made, listed, edited and removed with all they own.",
    "J5": "The console shows an agent's memories: searched, edited, moved, deleted, folded; a whiteboard is shared.",
    "D1": "Long output is stored whole and replaced by a reference.",
    "D2": "store_memory, retrieve_memory and search_memory answer as described.",
    "D3": "Parts of a detail can be read without reading all of it.",
    "D4": "Large content is compressed, deduplicated and kept beside or inside the database.",
    "D5": "A detail's summary is made without a model.",
    "D6": "References are never cut in half or dropped silently.",
    "E1": "An episode's importance is computed when it is stored.",
    "E2": "An episode's lifetime follows its category; expired ones are never returned.",
    "E3": "Recall asks four sources, ranks by the weighted sum and explains each score.",
    "E4": "Unretrieved memories decay, are archived, and stay within a quota.",
    "E5": "Documents are chunked, embedded and searched per tenant.",
    "E6": "Skills are loaded from SKILL.md files and never cut.",
    "E7": "Every mutation is in an audit log whose hash chain shows tampering.",
    "E8": "Workflow steps are recorded and searched.",
    "E9": "Working memory is built in a fixed order and fits a token budget.",
    "E10": "A cache-stable layout keeps the prompt's prefix identical from call to call.",
    "E11": "Purposes are recalls with their own filter, weights and heading.",
    "E12": "Nobody sees another tenant's or agent's memories; foreign is answered like missing.",
    "E13": "One command and one page say why something was or was not recalled, and what the agent saw.",
    "X1": "Text that came out of memory is not stored again as new memory.",
    "X2": "Near-duplicates are offered for merging; corrections supersede, and the past can be read.",
    "X3": "Every memory has an origin; low trust never enters core; there is a review queue.",
    "X4": "Consolidation proposes, is reviewed or applied, and can be undone.",
    "X5": "Erasure removes every trace and gives a receipt.",
    "X6": "Everything can be exported and imported without loss; files of other programs are read.",
    "X7": "Vectors of different embedders never mix; re-embedding is online; a failing embedder loses nothing.",
}

NOT_YET: set[str] = set()
