"""`/ask`, `POST /api/context` and the tool `context`: what an agent will be told for a task, within one's rights."""

from __future__ import annotations

import pytest

from memories.models import Recalled
from sessions_app.mcp import tools
from sessions_app.mcp.tools import access_for
from sessions_app.models import Session
from tests.support.api_callers import bearer, problem
from tests.support.factories import AgentFactory, MemoryFactory, ProjectFactory

pytestmark = pytest.mark.django_db
TASK = "Restart the queue of the shop"


@pytest.fixture
def shop():
    project = ProjectFactory(slug="shop", name="Shop")
    AgentFactory(slug="mender", name="Mender", tier=1, project=project)
    fields = {"taxonomy": "ops", "category": "behavior", "service": "queue", "confidence": 0.9}
    MemoryFactory(observation="The queue of the shop restarts <b>slowly</b>", project=project, **fields)
    MemoryFactory(observation="The queue of the shop is held", project=project, verdict="hold", **fields)
    return project


def test_the_page_shows_each_line_and_what_is_not_told(admin_client, shop):
    page = admin_client.get("/ask", {"agent": "mender", "task": TASK})
    html = page.content.decode()
    assert page.status_code == 200
    assert "The queue of the shop restarts &lt;b&gt;slowly&lt;/b&gt;" in html
    assert "Operational memories" in html and "project shop" in html
    left_out = html.partition('id="not-told-title"')[2]
    assert "held for review" in left_out
    assert not Session.objects.exists() and not Recalled.objects.exists()


def test_before_a_question_the_page_asks_one_and_a_wrong_one_is_named(admin_client, shop):
    assert "Everything it will be told" not in admin_client.get("/ask").content.decode()
    for wrong in ({"agent": "nobody"}, {"agent": "mender", "task": "x" * 200_000}):
        answer = admin_client.get("/ask", wrong)
        assert answer.status_code == 422
        assert 'class="errorlist"' in answer.content.decode()
    assert admin_client.get("/ask", {"agent": "", "task": "\0 odd"}).status_code == 422


def test_the_api_and_the_tool_say_the_same_as_the_page(shop):
    caller = bearer("read")
    answer = caller.post("/api/context", {"agent": "mender", "task": TASK})
    assert answer.status_code == 200
    data = answer.json()
    told = {part["name"]: [line["text"] for line in part["lines"]] for part in data["parts"]}
    assert told["ops"] == ["The queue of the shop restarts <b>slowly</b>"]
    assert "is held" not in answer.content.decode()
    by_tool = tools.context(access_for(agent="mender", read_only=True), TASK)
    assert by_tool == data
    assert caller.post("/api/context", {}).json()["told_once"] == 0


def test_a_token_with_a_project_asks_for_its_own_agents_only(shop):
    AgentFactory(slug="other", name="Other", project=ProjectFactory(slug="other"))
    caller = bearer("read", project=shop)
    for name in ("other", "nobody"):
        assert problem(caller.post("/api/context", {"agent": name})) == (404, "agent_not_found")
    assert "mender" in caller.post("/api/context", {"agent": "nobody"}).json()["fix"]
    assert "other" not in caller.post("/api/context", {"agent": "nobody"}).json()["fix"]
    own = caller.post("/api/context", {"task": TASK}).json()
    assert "ops" in {part["name"] for part in own["parts"]}
    assert problem(bearer("run", name="runner").post("/api/context", {}))[0] == 403
