"""Weights of `linear_model`: reinforces, contradicts, distinct; learned from tests/data/pairs (docs/matching.md)."""

from __future__ import annotations

WEIGHTS: tuple[tuple[float, float, float], ...] = (
    (-0.691, -0.645, 1.083),  # bias
    (0.210, 0.168, -0.378),  # cosine
    (0.127, -0.088, -0.039),  # close
    (-0.192, -0.887, 1.079),  # apart
    (0.456, 0.125, -0.581),  # alike
    (0.564, 0.346, -0.909),  # close and alike
    (-0.399, -0.202, 0.601),  # least own
    (-0.341, 0.152, 0.189),  # most own
    (0.119, -2.082, 1.963),  # own heads
    (0.148, 0.020, -0.168),  # own head
    (0.154, 0.727, -0.881),  # own tails
    (-0.623, 0.752, -0.129),  # shared head
    (0.049, 0.033, -0.082),  # value swapped
    (-0.138, 0.130, 0.008),  # value led alike
    (-0.592, 0.865, -0.273),  # one kind
    (-0.011, -0.161, 0.172),  # kind in head
    (-0.938, 1.094, -0.156),  # opposed
    (2.074, -0.935, -1.138),  # leaning alike
    (-0.159, 0.576, -0.417),  # stance
    (-1.149, -0.107, 1.256),  # amounts differ
    (-0.190, -0.279, 0.469),  # amount more
    (2.258, -1.151, -1.107),  # amounts same
    (-0.329, -1.246, 1.575),  # names differ
    (-0.169, 0.284, -0.115),  # name more
    (-0.805, 0.786, 0.018),  # order
    (0.689, -0.586, -0.103),  # order unsure
    (-0.563, 0.054, 0.509),  # denial
    (-0.051, 0.173, -0.121),  # stance unsure
    (0.814, -0.855, 0.040),  # statements
    (-0.034, 0.032, 0.002),  # length
    (0.769, 0.530, -1.299),  # exclusive
    (0.387, -0.231, -0.156),  # condition more
    (0.610, -0.125, -0.485),  # modal
    (-0.451, 1.212, -0.761),  # no own
    (0.207, 0.268, -0.475),  # one own
    (0.200, 0.134, -0.334),  # light own
    (-0.255, 1.058, -0.803),  # value of one kind
    (-0.118, 0.310, -0.191),  # name swapped
    (-0.632, 0.053, 0.580),  # scopes
    (-0.656, -0.014, 0.671),  # word swapped
    (-0.609, 0.297, 0.313),  # word more
    (2.533, -2.047, -0.485),  # nothing apart
    (1.629, -1.456, -0.172),  # own words alone apart
)
