"""The overview page as the tests read it."""

from __future__ import annotations

import re

from django.test import Client

FRAGMENT = "/overview/fragment"
HTMX = {"HX-Request": "true"}


def front(client: Client) -> str:
    response = client.get("/")
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def figure(html: str, name: str) -> str:
    """The number of a link that leads to what it counts."""
    link = rf'id="figure-{name}" href="[^"]+"[^>]*>(?: ?<svg .*?</svg>)? ?<b>'
    found = re.search(rf'(?:{link}|id="chart-{name}-all" href="[^"]+">)([^<]+?) ?<', html)
    assert found, name
    return found[1]


def piece(html: str, name: str) -> str:
    """One of the parts of the page."""
    found = re.search(rf'<div id="piece-{name}"[^>]*> ?<section .*?</section>', html)
    assert found, name
    return found.group()
