"""Who knows only the address finds the rest; who asks with HEAD is told what GET would say."""

from __future__ import annotations

import httpx2
import pytest

from tests.server.live import client_of, serving
from wellkept.api.wellkept import Wellkept


@pytest.mark.parametrize("path", ["/", "/api"])
def test_the_address_alone_says_what_is_where(wellkept: Wellkept, path: str) -> None:
    with serving(wellkept, no_auth=False) as address, client_of(address) as client:
        places = client.get(path).json()
        assert places.pop("name") == "wellkept"
        assert places.pop("rest") == "/api"
        assert {client.get(place).status_code for place in places.values()} <= {200, 303, 401}

        shown = client.get(path, headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
        assert (shown.status_code, shown.headers["Location"]) == (303, "/admin")


@pytest.mark.parametrize("path", ["/health", "/docs", "/api/agents", "/admin", "/api/agents/nobody", "/nothing-here"])
def test_head_is_get_without_the_body(client: httpx2.Client, path: str) -> None:
    got, headed = client.get(path), client.head(path)

    assert headed.status_code == got.status_code
    assert headed.headers["Content-Type"] == got.headers["Content-Type"]
    assert headed.headers["Content-Length"] == str(len(got.content))
    assert headed.content == b""


def test_head_takes_the_key_that_get_takes(wellkept: Wellkept) -> None:
    with serving(wellkept, no_auth=False) as address, client_of(address) as client:
        assert client.head("/health").status_code == 200
        assert client.head("/api/agents").status_code == 401
