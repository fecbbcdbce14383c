"""The weights of `third_look`, by the numbers of `weighing`: one fact, at odds, two facts.

Learned from tests/data/pairs (multinomial logistic regression, ridge), see docs/matching.md. No code.
"""

from __future__ import annotations

WEIGHTS: tuple[tuple[float, float, float], ...] = (
    (-0.714, -0.637, 1.102),  # bias
    (0.176, 0.168, -0.345),  # cosine
    (0.093, -0.073, -0.021),  # close
    (-0.166, -0.887, 1.053),  # apart
    (0.519, 0.072, -0.592),  # alike
    (0.591, 0.322, -0.913),  # close and alike
    (-0.445, -0.217, 0.662),  # least own
    (-0.290, 0.064, 0.226),  # most own
    (0.071, -2.130, 2.059),  # own heads
    (0.114, 0.050, -0.164),  # own head
    (0.137, 0.759, -0.896),  # own tails
    (-0.713, 0.806, -0.093),  # shared head
    (-0.042, 0.062, -0.020),  # value swapped
    (-0.182, 0.178, 0.004),  # value led alike
    (-0.551, 0.877, -0.326),  # one kind
    (-0.012, -0.159, 0.171),  # kind in head
    (-0.989, 1.347, -0.358),  # opposed
    (2.060, -0.891, -1.169),  # leaning alike
    (-0.106, 0.545, -0.439),  # stance
    (-1.151, -0.092, 1.243),  # amounts differ
    (-0.162, -0.290, 0.452),  # amount more
    (2.273, -1.128, -1.145),  # amounts same
    (-0.304, -1.209, 1.513),  # names differ
    (0.066, 0.121, -0.187),  # name more
    (-0.781, 0.754, 0.027),  # order
    (0.760, -0.626, -0.134),  # order unsure
    (-0.532, 0.035, 0.497),  # denial
    (-0.070, 0.162, -0.092),  # stance unsure
    (0.802, -0.837, 0.035),  # statements
    (-0.008, -0.034, 0.041),  # length
    (0.907, 0.370, -1.277),  # exclusive
    (0.373, -0.183, -0.190),  # condition more
    (0.623, -0.135, -0.487),  # modal
    (-0.406, 1.235, -0.829),  # no own
    (0.282, 0.222, -0.504),  # one own
    (0.224, 0.139, -0.363),  # light own
    (-0.250, 1.035, -0.785),  # value of one kind
    (-0.072, 0.293, -0.221),  # name swapped
    (-0.665, 0.096, 0.569),  # scopes
    (-0.523, -0.074, 0.597),  # word swapped
    (-0.590, 0.307, 0.283),  # word more
    (2.344, -2.313, -0.030),  # nothing apart
)
