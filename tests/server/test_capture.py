"""Output that is too long for a prompt, sent by any program."""

from __future__ import annotations

import httpx2
import pytest

from wellkept.api.wellkept import Wellkept
from wellkept.details.rules_keys import find_references

LOG = "".join(f"2026-01-31T12:00:{n % 60:02}Z INFO step {n} done\n" for n in range(500))


@pytest.mark.proves("D1")
def test_a_short_output_comes_back_and_a_long_one_is_stored(
    client: httpx2.Client, wellkept: Wellkept, ann: str
) -> None:
    short = client.post(f"{ann}/capture", json={"output": "done", "source": "make", "status": "success"})
    assert (short.status_code, short.json()) == (200, {"text": "done", "captured": False, "memory_key": None})

    body = {"output": LOG, "source": "make", "status": "success", "session_id": "s-1", "duration": 2.5}
    answer = client.post(f"{ann}/capture", json=body).json()

    (found,) = find_references(answer["text"])
    assert answer == {
        "text": f"Command 'make' executed. Logs stored in {found.text}. Status: success.",
        "captured": True,
        "memory_key": found.key,
    }
    memory = wellkept.agent(ann.rpartition("/")[2])
    detail = memory.details.get(found.key)
    assert detail.metadata == {"source": "make", "status": "success", "duration": 2.5}
    assert (detail.session_id, detail.type, memory.details.read(found.key, limit=100_000).content) == (
        "s-1",
        "command_output",
        LOG,
    )


def test_a_type_of_ones_own(client: httpx2.Client, ann: str) -> None:
    answer = client.post(f"{ann}/capture", json={"output": LOG, "source": "weather", "type": "api_response"}).json()

    assert answer["text"].startswith("[MemoryRef: weather-")
    assert " - weather: log, 500 lines" in answer["text"]


@pytest.mark.parametrize(
    ("body", "status"),
    [({}, 422), ({"output": 7}, 422), ({"output": "x", "colour": "red"}, 422), ({"output": LOG, "type": "A B"}, 400)],
)
def test_what_is_no_output_is_refused(client: httpx2.Client, ann: str, body: dict[str, object], status: int) -> None:
    answer = client.post(f"{ann}/capture", json=body)

    assert (answer.status_code, answer.json()["ok"]) == (status, False)
