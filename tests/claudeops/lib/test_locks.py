"""Work that one process does at a time."""

from __future__ import annotations

import pytest

from claudeops.lib.locks import file_lock, single_flight


def test_a_lock_file_is_held_by_one_until_its_block_ends(tmp_path):
    path = tmp_path / "new folder" / "work.lock"
    with file_lock(path) as first:
        with file_lock(path) as second:
            assert (first, second) == (True, False)
        with file_lock(tmp_path / "other.lock") as other:
            assert other
    with file_lock(path) as again:
        assert again


@pytest.mark.django_db
def test_the_lock_is_released_when_the_work_fails(tmp_path):
    with pytest.raises(RuntimeError), single_flight(4711, tmp_path / "work.lock") as mine:
        assert mine
        raise RuntimeError
    with single_flight(4711, tmp_path / "work.lock") as mine:
        assert mine
