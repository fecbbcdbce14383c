"""The weights of `third_look`, by the numbers of `weighing`: one fact, at odds, two facts.

Learned from tests/data/pairs (multinomial logistic regression, ridge), see docs/matching.md. No code.
"""

from __future__ import annotations

WEIGHTS: tuple[tuple[float, float, float], ...] = (
    (-0.839, -0.502, 1.068),  # bias
    (0.315, 0.084, -0.399),  # cosine
    (0.123, -0.087, -0.036),  # close
    (-0.446, -0.732, 1.178),  # apart
    (0.504, 0.093, -0.597),  # alike
    (0.646, 0.294, -0.939),  # close and alike
    (-0.450, -0.200, 0.650),  # least own
    (-0.298, 0.048, 0.250),  # most own
    (0.112, -2.138, 2.026),  # own heads
    (0.070, 0.079, -0.148),  # own head
    (0.111, 0.773, -0.885),  # own tails
    (-0.737, 0.813, -0.077),  # shared head
    (-0.003, 0.031, -0.027),  # value swapped
    (-0.184, 0.186, -0.002),  # value led alike
    (-0.555, 0.858, -0.303),  # one kind
    (-0.013, -0.152, 0.164),  # kind in head
    (-0.966, 1.285, -0.319),  # opposed
    (2.062, -0.921, -1.142),  # leaning alike
    (-0.120, 0.543, -0.422),  # stance
    (-1.183, -0.116, 1.299),  # amounts differ
    (-0.137, -0.308, 0.445),  # amount more
    (2.260, -1.126, -1.133),  # amounts same
    (-0.322, -1.238, 1.560),  # names differ
    (0.068, 0.094, -0.162),  # name more
    (-0.793, 0.753, 0.039),  # order
    (0.758, -0.650, -0.108),  # order unsure
    (-0.536, 0.017, 0.519),  # denial
    (-0.188, 0.243, -0.055),  # stance unsure
    (0.799, -0.822, 0.023),  # statements
    (-0.002, -0.046, 0.049),  # length
    (0.894, 0.377, -1.271),  # exclusive
    (0.425, -0.214, -0.212),  # condition more
    (0.563, -0.089, -0.474),  # modal
    (-0.397, 1.215, -0.819),  # no own
    (0.278, 0.220, -0.498),  # one own
    (0.261, 0.118, -0.379),  # light own
    (-0.253, 1.040, -0.787),  # value of one kind
    (-0.072, 0.306, -0.233),  # name swapped
    (-0.674, 0.096, 0.578),  # scopes
    (-0.509, -0.128, 0.636),  # word swapped
    (-0.569, 0.267, 0.302),  # word more
    (2.192, -2.428, 0.237),  # nothing apart
)
