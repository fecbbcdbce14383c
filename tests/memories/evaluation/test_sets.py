"""Evaluation sets are read with every field checked; an error names the line."""

from __future__ import annotations

import json

import pytest

from tests.benchmarks.evaluation.sets import InvalidSet, MemoryLine, PairLine, QueryLine, read


@pytest.mark.parametrize("line", ['{"id": "q", "query": "x"}', '{"id": "q", "query": "", "relevant": ["a"]}', "no"])
def test_a_line_that_is_not_a_query_is_refused_with_its_number(tmp_path, line):
    file = tmp_path / "queries.jsonl"
    file.write_text('{"id": "q0", "query": "x", "relevant": ["a"]}\n' + line)
    with pytest.raises(InvalidSet, match="line 2"):
        read(file, QueryLine)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"id": "m1", "text": "y"}, "the id 'm1' is there twice"),
        ({"id": "m2"}, "'text': Field required"),
        ({"id": "m2", "text": "y", "position": "third"}, "'position': Input should be a valid integer"),
        ({"id": "m2", "text": "y", "position": 2**31}, "'position': Input should be less than 2147483648"),
        ({"id": "m2", "text": "y", "created_at": "2026-02-30T10:00:00Z"}, "'created_at': Value error"),
        ({"id": "m2", "text": "y", "created_at": 5}, "'created_at': Value error, 5 is not an ISO 8601 time"),
        ({"id": "m2", "text": "y", "project": "a b"}, "'project': String should match pattern"),
        ({"id": "m2", "text": "y", "service": "s" * 65}, "'service': String should have at most 64 characters"),
    ],
)
def test_a_line_that_is_not_a_memory_is_refused_with_its_number(tmp_path, line, said):
    file = tmp_path / "memories.jsonl"
    file.write_text(json.dumps({"id": "m1", "text": "x"}) + "\n" + json.dumps(line))
    with pytest.raises(InvalidSet, match="line 2") as refused:
        read(file, MemoryLine)
    assert said in str(refused.value)


@pytest.mark.parametrize("kind", [MemoryLine, QueryLine, PairLine])
def test_a_file_without_lines_is_refused(tmp_path, kind):
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(InvalidSet, match="holds no lines"):
        read(tmp_path / "empty.jsonl", kind)


def test_an_id_is_there_once(tmp_path):
    file = tmp_path / "queries.jsonl"
    file.write_text(2 * '{"id": "q0", "query": "x", "relevant": ["a"]}\n')
    with pytest.raises(InvalidSet, match="line 2: the id 'q0' is there twice"):
        read(file, QueryLine)


def test_what_no_database_can_store_is_replaced_and_times_without_a_zone_are_utc(tmp_path):
    file = tmp_path / "memories.jsonl"
    file.write_text('{"id": 1, "text": "half \\ud83d, nul \\u0000.", "service": null, "created_at": "2026-03-01"}')
    (line,) = read(file, MemoryLine)
    assert (line.id, line.text, line.service) == ("1", "half \ufffd, nul  .", "")
    assert line.created_at.isoformat() == "2026-03-01T00:00:00+00:00"
