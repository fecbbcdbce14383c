"""The preview of the next prompt in a real browser: it follows the task as it is typed, and the cursor stays."""

from __future__ import annotations

import pytest

from tests.support.factories import MemoryFactory, ProjectFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_the_composed_prompt_follows_the_task_as_it_is_typed(operators_window):
    project = ProjectFactory(slug="shop")
    known = {"taxonomy": "project", "project": project, "service": None, "category": "pattern"}
    MemoryFactory(**known, observation="Sessions live in Redis", confidence=0.9)
    MemoryFactory(**known, observation="The login uses cookies", confidence=0.5, tags=["login", "src/core/**"])
    page = operators_window().open("/memories/preview?project=shop&agent=&task=")
    first = page.locator("#preview-project li a").first
    assert first.text_content() == "Sessions live in Redis"
    task = page.locator("#preview-task")
    task.click()
    page.keyboard.type("Fix the login")
    page.locator("#preview-project li .note", has_text="tags: login").wait_for()
    assert first.text_content() == "The login uses cookies"
    assert "Fix the login" in page.text_content("#preview-prompt")
    assert task.evaluate("one => one === document.activeElement")
    assert task.input_value() == "Fix the login"
    task.fill("")
    page.locator("#preview-write_scope").fill("src/core/auth/*.py")
    page.locator("#preview-project li .note", has_text="tags: src/core/**").wait_for()
    assert "- src/core/auth/*.py" in page.text_content("#preview-prompt")
