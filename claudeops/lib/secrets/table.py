"""The table of what is looked for (table.toml), read once."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

TABLE: dict[str, Any] = tomllib.loads(Path(__file__).with_name("table.toml").read_text(encoding="utf-8"))
