"""`ports.KeyStore`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recollect.errors import Conflict, NotFound
from recollect.model import KeyScope, Origin, Owner
from recollect.ports import Store
from tests.conformance.examples import EARLIER, LATER, NOW, api_key

MADE = (("k1", NOW), ("k2", NOW), ("k3", NOW), ("k0", LATER))


def test_a_key_comes_back_as_it_was_added(store: Store, ann: Owner) -> None:
    limits = {"agents": ("atlas", "börse"), "trust": Origin.TOOL}
    key = api_key("k1", ann.tenant, scope=KeyScope.OPERATOR, name="CI 'ü'", expires_at=LATER, **limits)

    assert store.add_key(key, "hash") == key
    assert store.find_key(ann.tenant, "k1") == (key, "hash")
    assert store.list_keys(ann.tenant) == [key]


def test_keys_are_listed_oldest_first(store: Store, ann: Owner) -> None:
    for id, created_at in (("b", NOW), ("c", EARLIER), ("a", NOW)):
        store.add_key(api_key(id, ann.tenant, created_at=created_at), "hash")

    assert [key.id for key in store.list_keys(ann.tenant)] == ["c", "a", "b"]


def test_an_id_is_used_once_in_a_tenant(store: Store, ann: Owner, stranger: Owner) -> None:
    store.add_key(api_key("k1", ann.tenant), "hash")

    with pytest.raises(Conflict, match="already"):
        store.add_key(api_key("k1", ann.tenant), "another")
    store.add_key(api_key("k1", stranger.tenant), "another")
    assert store.find_key(ann.tenant, "k1") == (api_key("k1", ann.tenant), "hash")


def test_a_revoked_key_stays_revoked_since_then(store: Store, ann: Owner) -> None:
    key = store.add_key(api_key("k1", ann.tenant), "hash")

    store.revoke_key(ann.tenant, "k1", at=NOW)
    store.revoke_key(ann.tenant, "k1", at=LATER)

    assert store.find_key(ann.tenant, "k1") == (replace(key, revoked_at=NOW), "hash")
    with pytest.raises(NotFound, match=r"^There is no such key\.$"):
        store.revoke_key(ann.tenant, "k2", at=NOW)


def test_the_last_use_is_kept(store: Store, ann: Owner) -> None:
    for id in ("k1", "k2", "k3"):
        store.add_key(api_key(id, ann.tenant), "hash")

    store.mark_used(ann.tenant, ["k1", "k3", "missing"], at=LATER)

    assert [key.last_used_at for key in store.list_keys(ann.tenant)] == [LATER, None, LATER]


def test_keys_are_listed_in_pages(store: Store, ann: Owner) -> None:
    made = [store.add_key(replace(api_key(id, ann.tenant), created_at=at), "hash") for id, at in MADE]

    assert store.list_keys(ann.tenant) == made
    assert store.list_keys(ann.tenant, limit=2) == made[:2]
    pages = [store.list_keys(ann.tenant, after=(key.created_at, key.id), limit=2) for key in made]
    assert pages == [made[1:3], made[2:4], made[3:], []]
    assert store.list_keys(ann.tenant, after=(NOW, "k2b")) == made[2:]  # where none is


def test_a_key_is_a_tenants_first_row(store: Store, ann: Owner) -> None:
    """So that maintenance and export find the tenant."""
    store.add_key(api_key("k1", ann.tenant), "hash")

    assert ann.tenant in store.list_tenants()
