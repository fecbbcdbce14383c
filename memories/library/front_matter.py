"""Read the YAML front matter of a Markdown document from outside: plain values, no aliases, no objects."""

from __future__ import annotations

import re
from typing import Any

import yaml

from claudeops.lib.tracked_file.document import FRONT, Document

LONGEST = 64 * 1024
"""Characters."""
NO_YAML = "its front matter is no YAML"


class _Loader(yaml.SafeLoader):
    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("an alias is not read")
        return super().compose_node(parent, index)


def read(document: Document) -> tuple[dict[str, Any], str]:
    """Return (values by name, problem). Of what is no YAML the plain `name: value` lines are read. Never raises."""
    count = sum(one == FRONT for one in document.classes)
    text = "".join(f"{text}\n" for text, _ in document.lines[1 : count - 1]) if count else ""
    if not text or document.lines[0][0].startswith("+"):
        return {}, ""
    try:
        if len(text) > LONGEST:
            raise yaml.YAMLError("it is too long")
        data = yaml.load(text, _Loader)  # noqa: S506  (a SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return dict(re.findall(r"^([\w -]+?):[ \t]*(.*)$", text, re.MULTILINE)), NO_YAML
    return ({str(name): value for name, value in data.items()} if isinstance(data, dict) else {}), ""
