"""Every way in to a recall: any text is answered, and nothing of another project or agent comes out of any of them.

The ways: the function, the command, the API's two addresses, the page, MCP for a session and by a token, and the
memories that a session's prompt begins with.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pytest

from memories.capture.text import fold
from memories.injection.ops import build
from memories.injection.relevant import Task
from memories.models import Project, Recalled
from memories.recall import Filters, binary_index, keyword_index, query_vector, recall
from sessions_app.mcp import tools
from sessions_app.mcp.tools import access_for
from sessions_app.models import Session
from tests.memories.commands.test_memory import run
from tests.memories.people import signed_in
from tests.sessions_app.mcp.test_http import Model
from tests.support.api_callers import Caller, bearer
from tests.support.embedders import WordEmbedder, active_model, answer_by, embed_all
from tests.support.factories import AgentFactory, MemoryFactory, ProjectFactory, SessionFactory

pytestmark = pytest.mark.django_db

SECRET = "zanzibar"
"""A word in every memory of others, and in none that may be returned."""

CONFINED = ("function", "command", "api post", "api get", "page", "mcp of a session", "mcp by a token", "prompt")


@dataclass
class House:
    """Project mine with its agent watcher, and its accounts and tokens."""

    mine: Project
    session: Session
    caller: Caller
    model: Model
    page: Any

    def ask(self, way: str, query: str) -> str:
        """All that comes out of this way for agent watcher of project mine, as text."""
        match way:
            case "function":
                filters = Filters(project=self.mine.pk, agent="watcher")
                return json.dumps(recall(query, filters, limit=100).as_dict())
            case "command":
                options = ("--project", "mine", "--agent", "watcher", "--limit", "100", "--explain")
                code, out, err = run("recall", *options, "--", query)
                assert code == 0, err
                return out
            case "api post":
                given = {"query": query, "project": "mine", "agent": "watcher", "limit": 100}
                return answered(self.caller.post("/api/recall", given))
            case "api get":
                given = {"q": query, "agent": "watcher", "limit": 100}
                return answered(self.caller.get(f"/api/memories/search?{urlencode(given)}"))
            case "page":
                given = {"query": query, "project": "mine", "agent": "watcher", "limit": 100}
                return answered(self.page.get("/memories/recall", given))
            case "mcp of a session":
                access = access_for(session=str(self.session.uuid))
                return json.dumps(tools.recall(access, query, None, None, 20))
            case "mcp by a token":
                answer = self.model.call("recall", query=query)
                assert not answer["isError"], answer
                return json.dumps(answer)
            case "prompt":
                built = build(budget=100_000, project_id=self.mine.pk, task=Task(query, "watcher", self.session.pk))
                return json.dumps([entry for entry in built.included if entry["reason"].startswith("relevant")])
        raise AssertionError(way)


def answered(response: Any) -> str:
    assert response.status_code == 200, response.content[:500]
    return response.content.decode()


@pytest.fixture
def house(settings, tmp_path):
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    binary_index.forget()
    query_vector.forget()
    mine = ProjectFactory(slug="mine")
    agent = AgentFactory(slug="watcher", project=mine)
    session = SessionFactory(agent=agent, project=mine, status="running")
    yield House(mine, session, bearer("read", project=mine), Model("read", project=mine), signed_in("viewer"))
    binary_index.forget()
    query_vector.forget()


@pytest.fixture(params=["words", "words and meaning"])
def known(house, request, monkeypatch):
    """What mine and watcher know; `known(scope, …)` adds what others know, nearer to the question than all of it."""
    text = "The nightly backup needs the NAS mounted"
    everybody = {"sequence": "talk", "category": "dependency"}
    MemoryFactory(project=house.mine, observation=f"{text}, found out in mine", position=1, **everybody)
    MemoryFactory(observation=f"{text}, as everybody is told", position=2, **everybody)
    MemoryFactory(project=house.mine, agent="watcher", observation=f"{text}, watcher says", tags=["x"], **everybody)

    def add(*scopes: dict[str, Any]) -> None:
        for scope in scopes:
            for more in ({}, {"tags": ["x"]}, {"verdict": "hold"}, {"position": 0, "sequence": "talk"}):
                MemoryFactory(observation=f"{text} {SECRET}", category="dependency", **scope, **more)
        if request.param == "words":
            keyword_index.catch_up()
            return
        found = WordEmbedder()
        answer_by(monkeypatch, found)
        embed_all(found, active_model(found))

    return add


@pytest.mark.parametrize("way", CONFINED)
def test_nothing_of_another_project_comes_out(way, house, known):
    other = ProjectFactory(slug="other")
    known({"project": other}, {"project": other, "agent": "watcher"})
    said = house.ask(way, "what does the nightly backup need")
    assert SECRET not in said
    for mine in ("found out in mine", "as everybody is told", "watcher says"):
        assert mine in said


@pytest.mark.parametrize("way", [way for way in CONFINED if way != "mcp by a token"])
def test_nothing_of_another_agent_comes_out(way, house, known):
    known({"agent": "mender"}, {"project": house.mine, "agent": "mender"})
    said = house.ask(way, "what does the nightly backup need")
    assert SECRET not in said
    for mine in ("found out in mine", "as everybody is told", "watcher says"):
        assert mine in said


@pytest.mark.parametrize("way", ["mcp of a session", "prompt"])
def test_what_is_recorded_of_it_names_only_what_came_back(way, house, known):
    known({"agent": "mender"})
    house.ask(way, "what does the nightly backup need")
    kept = Recalled.objects.latest("pk")
    assert len(kept.hits) == 3
    assert (kept.session_id, kept.actor) == (house.session.pk, "agent:watcher")


QUERIES = {
    "nothing": "",
    "spaces": " \t\n ",
    "a quote": '"',
    "an open quote": 'backup "needs the',
    "sql": "'; DROP TABLE memories; --",
    "full-text operators": 'backup AND (NOT "needs*) OR NEAR(the, nas) ^ {mounted}: -',
    "tsquery operators": "backup & !needs | <-> :* '",
    "patterns": "%_\\ [a-z]* .+?",
    "markup": "<script>alert(1)</script> {{ x }} {% y %}",
    "emoji": "🙂👩‍👩‍👧 backup 🇩🇪",
    "accents and other scripts": "Größe naïve 备份 резервная نسخ ١٢٣",
    "zero bytes": "back\x00up \x07\x1b[31m",
    "half a character": "backup \ud83d",
    "directions": "\u202ebackup\u202c \u200b\ufeff",
    "a hundred kilobytes": "backup needs " * 7_692,
    "one word of a hundred kilobytes": "a" * 100_000,
    "many words": " ".join(f"word{n}" for n in range(5_000)),
    "only stop words": "the of and to be or not",
    "an option": "--limit=3",
    "a dash": "-x",
}


def refused(way: str, query: str) -> bool:
    """An address and a form hold no more than 10,000 characters; from outside, none that is no character at all."""
    if way in ("api get", "page"):
        return len(query) > 10_000 or "\x00" in query
    return way == "api post" and ("\x00" in query or "\ud83d" in query)


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("way", CONFINED)
def test_any_text_is_answered_or_refused_in_words(way, query, house):
    MemoryFactory(observation="The nightly backup needs the NAS mounted", project=house.mine)
    keyword_index.catch_up()
    if way in ("api get", "page", "mcp by a token"):
        query = query.encode("utf-8", "replace").decode()  # an address cannot hold half a character
    if refused(way, query):
        if way == "api post":
            response = house.caller.post("/api/recall", {"query": query})
        elif way == "api get":
            response = house.caller.get(f"/api/memories/search?{urlencode({'q': query})}")
        else:
            response = house.page.get("/memories/recall", {"query": query})
        assert response.status_code == 422
        assert any(said in response.content for said in (b"character", b"unicode"))
        return
    said = house.ask(way, query)
    assert ("NAS mounted" in said.replace("<mark>", "").replace("</mark>", "")) or not {"backup", "needs"} & set(
        fold(query).lower().split()
    )
