"""Callers of the API in tests: bearers of a token, with JSON in and out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.test import Client

from memories.access import add_token
from memories.models import Project


@dataclass(frozen=True)
class Caller:
    """The bearer of `secret`; each method answers with Django's response."""

    secret: str
    name: str = "caller"

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        sent = {} if body is None else {"data": json.dumps(body), "content_type": "application/json"}
        # A caller is no browser: no cookie, and the CSRF check of a browser is on.
        client = Client(enforce_csrf_checks=True, raise_request_exception=False)
        return client.generic(method, path, headers={"Authorization": f"Bearer {self.secret}"} | headers, **sent)

    def get(self, path: str) -> Any:
        return self.ask("GET", path)

    def post(self, path: str, body: Any) -> Any:
        return self.ask("POST", path, body)

    def put(self, path: str, body: Any) -> Any:
        return self.ask("PUT", path, body)

    def patch(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.ask("PATCH", path, body, **headers)

    def delete(self, path: str, body: Any = None) -> Any:
        return self.ask("DELETE", path, body)


def bearer(*scopes: str, project: Project | None = None, name: str = "caller") -> Caller:
    _, secret = add_token(name, scopes or ["read"], by="operator", project=project)
    return Caller(secret, name)


def problem(response: Any) -> tuple[int, str]:
    """Return (status, code) of a refusal, after checking that its form is complete."""
    document = response.json()
    assert {"error"} <= set(document) <= {"error", "fix"}, document
    assert {"code", "message"} <= set(document["error"]) <= {"code", "message", "fields", "current"}, document
    assert all(document.values())
    assert all(document["error"].values())
    return response.status_code, document["error"]["code"]
