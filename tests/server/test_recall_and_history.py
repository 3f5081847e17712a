"""Four sources, purposes, explanations, workflows and recorded events over REST."""

from __future__ import annotations

import uuid

import httpx2
import pytest

from tests.server.test_agents_and_memories import remember

SECRET = "AKIAQYLPMN5HIEXAMP42"


@pytest.fixture
def word() -> str:
    """A word nobody else in this module uses, because the tenant is shared."""
    return f"zorg{uuid.uuid4().hex[:8]}"


@pytest.fixture
def work(client: httpx2.Client, ann: str, word: str) -> str:
    """A workflow with two steps, an event and a memory, all about the word; the workflow's id."""
    remember(client, ann, f"Ann likes the {word}")
    workflow = client.post("/api/workflows", json={"name": f"Ship {word}"})
    assert workflow.status_code == 201
    steps = f"/api/workflows/{workflow.json()['id']}/steps"
    done = {"step": "pack", "output": f"{word} packed well", "agent_id": "packer"}
    failed = {"step": "send", "output": f"{word} got lost", "agent_id": "carrier", "status": "failed"}
    assert [client.post(steps, json=body).status_code for body in (done, failed)] == [201, 201]
    event = {"action": "order.ship", "message": f"Shipping of {word} was approved", "agent_id": "kim"}
    assert client.post("/api/audit", json=event).status_code == 201
    return str(workflow.json()["id"])


@pytest.mark.proves("E3", "E8", "E12")
def test_recall_finds_what_the_tenant_did(client: httpx2.Client, ann: str, work: str, word: str) -> None:
    def recalled(**body: object) -> set[tuple[str, str]]:
        answer = client.post(f"{ann}/recall", json={"query": word, "limit": 20, **body}).json()
        assert answer["missing"] == []
        return {
            (hit["source"], hit["id"]) for hit in answer["hits"] if word in hit["text"] and "begun" not in hit["text"]
        }

    everything = recalled()
    assert {("memory", "m-1"), ("workflow", f"{work}/1"), ("workflow", f"{work}/2")} <= everything
    assert {source for source, _ in everything} == {"memory", "workflow", "audit"}
    assert recalled(sources=["workflow"]) == {("workflow", f"{work}/1"), ("workflow", f"{work}/2")}
    other = client.post(f"{ann}-other/recall", json={"query": word, "limit": 20}).json()["hits"]
    assert {hit["source"] for hit in other} == {"workflow", "audit"}
    wrong = client.post(f"{ann}/recall", json={"query": word, "sources": ["mind"]})
    assert (wrong.status_code, wrong.json()["code"]) == (400, "invalid")


@pytest.mark.proves("E11")
def test_recall_takes_a_purpose(client: httpx2.Client, ann: str, work: str, word: str) -> None:
    def recalled(purpose: str) -> httpx2.Response:
        return client.post(f"{ann}/recall", json={"query": f"ship {word}", "purpose": purpose, "limit": 20})

    decisions, agents = recalled("decision_memo").json(), recalled("delegation").json()
    assert decisions["heading"] == "Past approvals and refusals"
    assert [hit["agent_id"] for hit in decisions["hits"] if word in hit["text"]] == ["kim"]
    assert [hit["agent_id"] for hit in agents["hits"] if word in hit["text"]][-1] == "carrier"
    failures = [hit["id"] for hit in recalled("task_intake").json()["hits"]]
    assert failures[0] == f"{work}/2"
    wrong = recalled("fun")
    assert (wrong.status_code, wrong.json()["code"]) == (400, "invalid")


def test_an_explanation_says_why(client: httpx2.Client, ann: str, work: str, word: str) -> None:
    def explained(id: str, **body: object) -> dict[str, object]:
        answer = client.post(f"{ann}/explain", json={"query": word, "id": id, **body})
        assert answer.status_code == 200
        return dict(answer.json())

    said = explained("m-1")
    assert (said["outcome"], said["words"], said["rival"]) == ("recalled", [word], None)
    assert said["hit"]["id"] == "m-1"  # type: ignore[index]
    assert explained(f"{work}/1", limit=1)["outcome"] == "out_ranked"
    assert explained("m-1", sources=["audit"])["outcome"] == "filtered"
    assert explained("m-7")["outcome"] == explained("nothing")["outcome"] == "missing"
    whole = client.post(f"{ann}/explain", json={"query": word, "limit": 1}).json()
    assert (whole["id"], whole["outcome"], whole["items"][0]["outcome"]) == ("", "recalled", "recalled")
    assert {"out_ranked"} == {each["outcome"] for each in whole["items"][1:]}


def test_workflows_are_listed_and_read_in_pages(client: httpx2.Client, work: str) -> None:
    assert client.get(f"/api/workflows/{work}").json()["id"] == work
    first = client.get(f"/api/workflows/{work}/steps", params={"limit": 1}).json()
    rest = client.get(f"/api/workflows/{work}/steps", params={"cursor": first["next_cursor"]}).json()
    assert [step["position"] for step in (*first["items"], *rest["items"])] == [1, 2]
    assert rest["next_cursor"] is None

    found, cursor = [], ""
    while cursor is not None:
        page = client.get("/api/workflows", params={"limit": 1, "cursor": cursor}).json()
        found += [each["id"] for each in page["items"]]
        cursor = page["next_cursor"]
    assert work in found
    assert found == sorted(set(found))


def test_what_is_missing_or_not_acceptable_is_refused(client: httpx2.Client, work: str) -> None:
    def answered(path: str, body: dict[str, object]) -> tuple[int, str]:
        answer = client.post(path, json=body)
        assert SECRET not in answer.text
        return answer.status_code, answer.json()["code"]

    steps = f"/api/workflows/{work}/steps"
    assert answered("/api/workflows/no-such/steps", {"step": "x"}) == (404, "not_found")
    assert client.get("/api/workflows/no-such").status_code == 404
    assert client.get("/api/workflows/no-such/steps").status_code == 404
    assert answered("/api/workflows", {"name": " "}) == (400, "invalid")
    assert answered(steps, {"step": "x", "status": "No!"}) == (400, "invalid")
    assert answered(steps, {"step": "x", "output": f"the key is {SECRET}"}) == (400, "secret_rejected")
    assert answered(steps, {"output": "x"}) == (422, "unprocessable")
    assert answered("/api/audit", {"action": "memory.add", "message": "x"}) == (400, "invalid")
    assert answered("/api/audit", {"action": "a.b", "message": f"the key is {SECRET}"}) == (400, "secret_rejected")
