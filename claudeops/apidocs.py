"""Serve the OpenAPI document (to staff and any token), and a page of it (to staff) without scripts from other hosts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from claudeops.api import api, problem
from memories.access import access_of


@require_safe
@login_not_required
def document(request: HttpRequest) -> HttpResponse:
    kind, _, secret = request.headers.get("Authorization", "").partition(" ")
    if request.user.is_staff or (kind.lower() == "bearer" and access_of(secret.strip()) is not None):
        return JsonResponse(api.get_openapi_schema())
    return problem(401, "no_token", "The document needs a token or a sign-in.", "Send a bearer token.")


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    schema = api.get_openapi_schema()
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            tag = (operation.get("tags") or ["more"])[0]
            groups.setdefault(tag, []).append(_shown(path, method, operation, schema["components"]["schemas"]))
    return render(request, "api/docs.html", {"groups": groups, "description": schema["info"]["description"]})


def _shown(path: str, method: str, operation: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    return {
        "method": method.upper(),
        "path": path,
        "id": operation["operationId"].rpartition("_api_")[2],
        "summary": operation.get("summary", ""),
        "description": operation.get("description", ""),
        "scope": operation.get("x-scope", ""),
        "parameters": [
            {"name": parameter["name"], "place": parameter["in"], "text": parameter.get("description", "")}
            for parameter in operation.get("parameters", [])
        ],
        "fields": list(_fields(body, schemas)),
        "answers": [
            {"status": status, "fields": list(_fields(_schema(answer), schemas))}
            for status, answer in operation["responses"].items()
            if int(status) < 400
        ],
        "refusals": ", ".join(str(status) for status in operation["responses"] if int(status) >= 400),
    }


def _schema(answer: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = answer.get("content", {}).get("application/json", {}).get("schema", {})
    return schema


def _fields(schema: dict[str, Any], schemas: dict[str, Any]) -> Iterator[dict[str, Any]]:
    named = schemas.get(schema.get("$ref", "").rpartition("/")[2], schema)
    for one in named.get("oneOf", ()):  # the forms of a body, of which one is sent
        name = str(one["$ref"]).rpartition("/")[2]
        text = " ".join(str(schemas[name].get("description", "")).split())
        yield {"name": name, "type": "a form", "required": False, "text": f"{text} {_names(schemas[name])}"}
    required = named.get("required", [])
    for name, field in named.get("properties", {}).items():
        yield {"name": name, "type": _type(field), "required": name in required, "text": field.get("description", "")}


def _names(schema: dict[str, Any]) -> str:
    return f"Fields: {', '.join(schema.get('properties', {}))}."


def _type(field: dict[str, Any]) -> str:
    """Describe a field's type: `string or null`, `list of integer`, or the name of a schema."""
    if "anyOf" in field:
        return " or ".join(_type(one) for one in field["anyOf"])
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2]
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    return str(field.get("format") or field.get("type") or "anything")
