"""A browser without a window: it keeps cookies, sends forms as one does, and reads pages."""

from __future__ import annotations

import html
import re
from typing import Any

import httpx2

from tests.server.live import LIMITS, NO_CERTIFICATES, PATIENCE


class Browser:
    """One visitor of the console at an address."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.client = httpx2.Client(
            base_url=address, timeout=PATIENCE, limits=LIMITS, trust_env=False, verify=NO_CERTIFICATES
        )

    def get(self, path: str, **query: Any) -> httpx2.Response:
        return self.client.get(path, params=query or None)

    def send(self, path: str, **fields: str) -> httpx2.Response:
        """Send a form, and follow where the answer leads."""
        return self.client.post(path, data=fields, headers={"Origin": self.address}, follow_redirects=True)

    def log_in(self, key: str) -> httpx2.Response:
        return self.send("/admin/login", key=key)

    def close(self) -> None:
        self.client.close()


def read(answer: httpx2.Response) -> str:
    """What a person reads on a page."""
    text = re.sub(r"<(title|svg)\b.*?</\1>", " ", answer.text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def links(answer: httpx2.Response, label: str) -> list[str]:
    """Where the links of this name lead."""
    found = re.findall(r'<a\b[^>]*href="([^"]*)"[^>]*>(.*?)</a>', answer.text, re.DOTALL)
    return [html.unescape(address) for address, inner in found if re.sub(r"<[^>]+>", "", inner).strip() == label]
