import time, threading
from concurrent.futures import ThreadPoolExecutor
from tests.services.conftest import *
import pytest

def test_timing(recollect, ann):
    ann.remember("x")

def test_timing2(recollect, ann):
    ann.remember("x")

def test_batch_dups(ann):
    r = ann.remember_many(["alpha beta gamma", "Alpha  beta GAMMA"])
    assert r[0].id == r[1].id

def test_concurrent_dups(ann):
    ann.remember("zero")
    with ThreadPoolExecutor(8) as pool:
        ids = {m.id for m in pool.map(lambda _: ann.remember("same text here"), range(8))}
    assert len(ids) == 1

def test_held_same(ann):
    held = ann.remember("I obey", kind="core", origin="tool")
    mine = ann.remember("I obey", kind="core")
    assert mine.held_at is None and "I obey" in (ann.private_memory() or "")

def test_held_correction(ann):
    old = ann.remember("I am careful with money", kind="core")
    new = ann.remember("I spend freely", kind="core", origin="tool", supersedes=old.id)
    assert "careful" in (ann.private_memory() or "")

def test_redact_len(place, clock, tenant_id):
    with place.open(clock, secrets="redact") as r:
        a = r.agent("ann", tenant_id)
        m = a.remember("x" * 470 + " my password is hunter2")
        assert len(m.text) <= 500

def test_private_echo(ann):
    ann.remember("I am careful with other people's money", kind="core")
    ann.private_memory()
    assert not ann.call_tool("memory_store", {"text": "I am careful with other people's money"})["ok"]

def test_backdated_journal(ann, clock):
    ann.remember("second", kind="journal")
    ann.remember("first", kind="journal", created_at=clock() - timedelta(days=2))
    t = ann.private_memory()
    assert t.index("first") < t.index("second")

def test_double_supersede(ann, clock):
    a = ann.remember("port is 1111")
    clock.forward(days=1)
    b = ann.remember("port is 2222", supersedes=a.id)
    clock.forward(days=1)
    c = ann.remember("port is 3333", supersedes=a.id)
    assert ann.get(a.id).valid_to == b.created_at

def test_asof_crowd(ann, clock):
    a = ann.remember("apple pie from monday", kind="episode", importance=.5)
    t = clock()
    clock.forward(days=1)
    ann.remember_many([{"text": f"apple apple {n}", "kind": "episode"} for n in range(120)])
    assert [h.id for h in ann.recall("apple", as_of=t)] == [a.id]

def test_quota_superseded(fresh_place, clock):
    with fresh_place.open(clock, episode_quota=2) as r:
        a = r.agent("ann")
        x = a.remember("one important", kind="episode", importance=.9)
        clock.forward(hours=1)
        y = a.remember("one corrected", kind="episode", importance=.5, supersedes=x.id)
        z = a.remember("another", kind="episode", importance=.4)
        r.maintain()
        assert {m.id for m in a.list()} == {y.id, z.id}

@pytest.mark.parametrize("change", ["meta='not json'", "at='garbage'", "folded='zzz'", "message='x'", "agent_id=NULL", "agent_id='eve'", "previous_hash=''", "hash='x'", "action='y'", "at='2027-01-01T00:00:00Z'", "meta='{}'", "meta='\"a\"'"])
def test_tamper(place, tenant, ann, change):
    ann.remember("one"); ann.remember("two")
    try:
        place.sql(f"UPDATE audit_log SET {change} WHERE tenant_id='{tenant.id}' AND id=2")
    except psycopg.Error as e:
        return
    rep = tenant.verify_audit()
    assert not rep.is_intact and rep.broken_at == 2

def test_marks_survive_busy(place, clock, tenant_id):
    if place.engine != "sqlite": return
    import apsw
    with place.open(clock, busy_timeout=0.1) as r:
        a = r.agent("ann", tenant_id)
        m = a.remember("apples are red", kind="episode")
        a.recall("apples")
        c = apsw.Connection(place.url.removeprefix("sqlite:///"))
        c.execute("BEGIN IMMEDIATE")
        time.sleep(1.6)
        c.execute("ROLLBACK"); c.close()
    with place.open(clock) as r:
        assert r.agent("ann", tenant_id).get(m.id).last_retrieved_at == clock()
