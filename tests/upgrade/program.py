"""Child process that opens a store and answers calls, one JSON line each.

It imports the package that `--package` names from PYTHONPATH, so it may use only what both editions have.
"""

import dataclasses
import importlib
import json
import sys
from operator import attrgetter
from typing import Any

if "--first-edition" in sys.argv:
    # snowballstemmer prefers PyStemmer if it finds it; the first edition did not install it.
    sys.modules["Stemmer"] = None  # type: ignore[assignment]

PACKAGE = sys.argv[sys.argv.index("--package") + 1]
LIBRARY = importlib.import_module(PACKAGE)
Error: type[Exception] = getattr(LIBRARY, f"{PACKAGE.title()}Error")

NAMES = {
    ("agent", "list_details"): "details.list",
    ("agent", "messages"): "sessions.messages",
    ("agent", "read_detail"): "details.read",
    ("agent", "sessions"): "sessions.list",
    ("agent", "store_detail"): "details.store",
    ("store", "mend_index"): "mend_index",
    ("store", "verify_key"): "keys.verify",
    ("tenant", "add_key"): "keys.create",
    ("tenant", "audit_events"): "audit.list",
    ("tenant", "ingest_text"): "knowledge.ingest_text",
    ("tenant", "list_documents"): "knowledge.list",
    ("tenant", "list_passages"): "knowledge.passages",
    ("tenant", "list_steps"): "workflows.steps",
    ("tenant", "list_workflows"): "workflows.list",
    ("tenant", "record_step"): "workflows.record",
    ("tenant", "revoke_key"): "keys.revoke",
    ("tenant", "search_knowledge"): "knowledge.search",
}
"""Verbs that have another name since version 0.2, by which the tests call them."""

TENANT = "acme"
AGENT = "atlas"


def main(url: str) -> None:
    """Open the store at `url` and answer calls until standard input ends."""
    try:
        store = getattr(LIBRARY, PACKAGE.title())(url)
    except Error as error:
        answer_refusal(error)
        return
    with store:
        answer({"result": None})
        tenant = store.tenant(TENANT)
        targets: dict[str, Any] = {
            "store": store,
            "tenant": tenant,
            "audit": tenant.audit,
            "agent": tenant.agent(AGENT),
        }
        for line in sys.stdin:
            target, method, args, options = json.loads(line)
            try:
                name = NAMES.get((target, method), method) if hasattr(tenant, "agents") else method
                result = attrgetter(name)(targets[target])(*args, **options)
            except Error as error:
                answer_refusal(error)
            else:
                answer({"result": result})


def answer(values: dict[str, Any]) -> None:
    """Write one line of JSON."""
    sys.stdout.write(json.dumps(values, default=to_json) + "\n")
    sys.stdout.flush()


def answer_refusal(error: Exception) -> None:
    """Write the name and the sentence of an error."""
    answer({"refused": f"{type(error).__name__}: {error}"})


def to_json(value: Any) -> Any:
    """Convert a record to a dictionary, anything else to text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    return str(value)


if __name__ == "__main__":
    main(sys.argv[1])
