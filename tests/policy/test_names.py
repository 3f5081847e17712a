"""Which ids and names are acceptable."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wellkept.errors import Invalid
from wellkept.language.names import DEFAULT_TENANT, check_agent, check_owner, check_tenant, memory_id, memory_seq
from wellkept.model import Owner


@pytest.mark.parametrize("tenant", ["a", "default", "ACME", "acme.co", "a_b-c.d", "0", "9lives", "x" * 63])
def test_a_tenant_is_a_plain_slug(tenant: str) -> None:
    assert check_tenant(tenant) == tenant


@pytest.mark.parametrize(
    "tenant", ["", "x" * 64, ".a", "-a", "_a", "a b", "a/b", "a'b", 'a"b', "a;b", "ä", "a\n", "a\x00", None, 7, b"a"]
)
def test_anything_else_is_no_tenant(tenant: object) -> None:
    with pytest.raises(Invalid, match="A tenant id is 1 to 63"):
        check_tenant(tenant)


@given(st.text(max_size=80))
def test_what_passes_for_a_tenant_is_safe_inside_a_literal(text: str) -> None:
    try:
        tenant = check_tenant(text)
    except Invalid:
        return
    assert tenant.isascii()
    assert not set(tenant) & set("'\"\\;\n\r\0 ")


@pytest.mark.parametrize("agent", ["a", "atlas", "user@host.org", "a:b+c", "_x", "Ägent", "東京", "9", "x" * 128])
def test_an_agent_may_have_a_name_of_any_script(agent: str) -> None:
    assert check_agent(agent) == agent


@pytest.mark.parametrize(
    "agent", ["", "x" * 129, "a b", "a/b", "../x", ".a", "-a", "@a", "a\n", "a\x00", "a?b", "🦉", None, 7]
)
def test_anything_else_is_no_agent(agent: object) -> None:
    with pytest.raises(Invalid, match="An agent id is 1 to 128"):
        check_agent(agent)


def test_composed_and_decomposed_are_one_agent() -> None:
    assert check_agent(unicodedata.normalize("NFD", "Zoë")) == check_agent("Zoë") == "Zoë"


def test_an_owner_is_an_agent_of_the_default_tenant_unless_one_is_named() -> None:
    assert check_owner("ann") == Owner(DEFAULT_TENANT, "ann")
    assert check_owner("ann", "acme") == Owner("acme", "ann")
    with pytest.raises(Invalid):
        check_owner("ann", "no such slug")


@given(st.integers(1, 10**18 - 1))
def test_an_id_and_its_number_belong_together(seq: int) -> None:
    assert memory_seq(memory_id(seq)) == seq


@pytest.mark.parametrize(
    "id",
    ["", "m-", "m-0", "m-01", "m--1", "M-1", "m-1 ", " m-1", "m-1\n", "m-1.0", "m-１", "7", "x-7", "m-" + "9" * 19],
)
def test_anything_else_is_no_id(id: str) -> None:
    assert memory_seq(id) is None
