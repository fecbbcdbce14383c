"""The JSON schema of the structured answer that agents give; the CLI takes it inline."""

from __future__ import annotations

import json
from typing import Any

_STRING: dict[str, Any] = {"type": "string"}

RESPONSE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "summary": {"type": "string", "description": "What was found and done, in one to three sentences."},
        "events": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "level": {"type": "string", "enum": ["info", "warning", "critical"]},
                    "service": _STRING,
                    "message": _STRING,
                },
                "required": ["level", "message"],
            },
        },
        "memories": {
            "type": "array",
            "description": "Durable observations only; most runs have none.",
            "items": {
                "type": "object",
                "properties": {
                    "key": {"type": "string", "description": "service:category, or category"},
                    "value": _STRING,
                },
                "required": ["key", "value"],
            },
        },
        "memories_used": {
            "type": "array",
            "description": "The numbers of the memories that you used: 42 for [m42].",
            "items": {"type": "integer"},
        },
        "escalation": {
            "type": "object",
            "properties": {
                "needed": {"type": "boolean"},
                "reason": _STRING,
                "context": _STRING,
                "failed_checks": {"type": "array", "items": _STRING},
            },
            "required": ["needed"],
        },
        "services_checked": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": _STRING,
                    "status": {"type": "string", "enum": ["healthy", "degraded", "unhealthy", "unknown"]},
                    "detail": _STRING,
                },
                "required": ["name", "status"],
            },
        },
    },
    "required": ["summary", "events", "memories", "escalation", "services_checked"],
}

RESPONSE_SCHEMA_JSON = json.dumps(RESPONSE_SCHEMA, separators=(",", ":"), sort_keys=True)
