"""Where the MEMORY.md files are."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from claudeops.env import VARIABLES
from memories.curate.files import file_of, place_of
from memories.models import MemoryFile
from tests.support.factories import ProjectFactory

pytestmark = pytest.mark.django_db


def test_the_file_is_in_the_data_folder_unless_a_path_is_set(settings, tmp_path):
    settings.CLAUDEOPS_DATA_DIR = tmp_path
    project = ProjectFactory(slug="shop", path="/srv/shop")
    assert place_of(None).folder / place_of(None).path == tmp_path / "memory" / "MEMORY.md"
    assert place_of(project).folder / place_of(project).path == tmp_path / "memory" / "projects/shop/MEMORY.md"
    settings.CLAUDEOPS_MEMORY_FILE = "/srv/notes/MEMORY.md"
    project.memory_path = "docs/MEMORY.md"
    assert str(place_of(None).folder / place_of(None).path) == "/srv/notes/MEMORY.md"
    assert str(place_of(project).folder / place_of(project).path) == "/srv/shop/docs/MEMORY.md"
    assert not place_of(project).is_ours


def test_each_scope_has_one_row():
    project = ProjectFactory()
    assert file_of(None) == file_of(None)
    assert file_of(project) == file_of(project)
    assert MemoryFile.objects.count() == 2


@pytest.mark.parametrize("value", ["MEMORY.md", "/srv/notes", "/srv/notes/.git/MEMORY.md", "/srv/notes/memory.txt"])
def test_the_setting_is_the_path_of_a_markdown_file(value):
    with pytest.raises(ImproperlyConfigured, match="absolute path of a file that ends with"):
        VARIABLES["CLAUDEOPS_MEMORY_FILE"].value({"CLAUDEOPS_MEMORY_FILE": value})
