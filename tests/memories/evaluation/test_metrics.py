"""Metrics of ranked retrieval."""

from __future__ import annotations

import pytest

from tests.benchmarks.evaluation.metrics import means_with_intervals, ranking_metrics


def test_metrics_of_one_query():
    found = ranking_metrics(["x", "a", "y", "b"], ["a", "b"])
    assert (found["recall@1"], found["recall@5"], found["hit@1"], found["hit@5"]) == (0, 1, 0, 1)
    assert found["mrr"] == 0.5
    assert found["ndcg@10"] == pytest.approx((1 / 1.58496 + 1 / 2.32193) / (1 + 1 / 1.58496), abs=1e-4)


def test_the_interval_holds_the_mean_and_is_the_same_each_time():
    each = [ranking_metrics(ranked, ["a"]) for ranked in (["a"], ["b"], ["a"], ["b"])]
    found = means_with_intervals(each)
    assert found == means_with_intervals(each)
    assert found["recall@1"]["low"] < found["recall@1"]["mean"] == 0.5 < found["recall@1"]["high"]
