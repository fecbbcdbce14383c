"""The weights of `third_look`, by the numbers of `weighing`: one fact, at odds, two facts.

Learned from tests/data/pairs (multinomial logistic regression, ridge), see docs/matching.md. No code.
"""

from __future__ import annotations

WEIGHTS: tuple[tuple[float, float, float], ...] = (
    (-0.153, -1.058, 0.924),  # bias
    (0.556, 0.166, -0.723),  # cosine
    (0.657, -0.029, -0.628),  # close
    (-0.629, -0.996, 1.624),  # apart
    (0.486, -0.295, -0.191),  # alike
    (0.527, -0.018, -0.508),  # close and alike
    (-0.293, -0.253, 0.546),  # least own
    (-0.096, 0.012, 0.085),  # most own
    (-0.088, -1.860, 1.948),  # own heads
    (0.268, -0.117, -0.152),  # own head
    (-0.229, 0.700, -0.471),  # own tails
    (-0.594, 0.848, -0.254),  # shared head
    (-0.056, 0.423, -0.367),  # value swapped
    (-0.612, 0.355, 0.257),  # value led alike
    (-0.618, 0.955, -0.337),  # one kind
    (-0.016, -0.264, 0.280),  # kind in head
    (-1.968, 1.853, 0.115),  # opposed
    (1.874, -0.659, -1.215),  # leaning alike
    (-0.523, 0.730, -0.208),  # stance
    (-2.474, 0.872, 1.602),  # amounts differ
    (-0.047, -0.391, 0.438),  # amount more
    (1.412, -1.038, -0.374),  # amounts same
    (-1.013, -0.700, 1.713),  # names differ
    (-0.131, 0.062, 0.068),  # name more
    (-1.246, 1.227, 0.019),  # order
    (-0.167, -0.173, 0.340),  # order unsure
    (-1.074, 0.565, 0.509),  # denial
    (-0.003, 0.173, -0.170),  # stance unsure
    (0.581, -0.552, -0.029),  # statements
    (0.107, 0.092, -0.199),  # length
    (0.199, 0.412, -0.611),  # exclusive
    (0.658, -0.297, -0.360),  # condition more
    (0.420, -0.199, -0.221),  # modal
    (0.118, 1.024, -1.142),  # no own
    (0.132, 0.387, -0.518),  # one own
    (0.845, -0.283, -0.561),  # light own
    (-0.278, 0.978, -0.700),  # value of one kind
    (-0.073, 0.130, -0.057),  # name swapped
    (-0.830, 0.002, 0.828),  # scopes
)
