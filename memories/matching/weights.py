"""The weights of `third_look`, by the numbers of `weighing`: one fact, at odds, two facts.

Learned from tests/data/pairs (multinomial logistic regression, ridge), see docs/matching.md. No code.
"""

from __future__ import annotations

WEIGHTS: tuple[tuple[float, float, float], ...] = (
    (0.420, -1.212, 0.916),  # bias
    (0.389, 0.181, -0.569),  # cosine
    (0.592, -0.082, -0.510),  # close
    (-0.494, -0.927, 1.421),  # apart
    (0.354, -0.084, -0.270),  # alike
    (0.400, 0.108, -0.508),  # close and alike
    (-0.493, -0.132, 0.625),  # least own
    (-0.284, 0.066, 0.219),  # most own
    (-0.278, -1.718, 1.996),  # own heads
    (0.132, 0.290, -0.422),  # own head
    (-0.106, 0.565, -0.458),  # own tails
    (-0.706, 0.924, -0.218),  # shared head
    (-0.149, 0.422, -0.272),  # value swapped
    (-0.602, 0.408, 0.194),  # value led alike
    (-0.566, 0.960, -0.394),  # one kind
    (-0.012, -0.258, 0.270),  # kind in head
    (-1.513, 1.477, 0.036),  # opposed
    (1.732, -0.616, -1.115),  # leaning alike
    (-1.102, 0.822, 0.281),  # stance
    (-2.406, 0.903, 1.504),  # amounts differ
    (-0.000, -0.298, 0.298),  # amount more
    (1.605, -1.316, -0.290),  # amounts same
    (-1.017, -0.679, 1.696),  # names differ
    (-0.206, 0.063, 0.143),  # name more
    (-1.307, 1.284, 0.023),  # order
    (-0.117, -0.168, 0.286),  # order unsure
    (-0.916, 0.624, 0.292),  # denial
    (0.280, 0.250, -0.531),  # stance unsure
    (0.625, -0.541, -0.084),  # statements
    (0.162, 0.015, -0.177),  # length
    (0.224, 0.223, -0.447),  # exclusive
    (0.335, -0.355, 0.020),  # condition more
    (0.490, -0.039, -0.451),  # modal
    (0.190, 0.888, -1.078),  # no own
    (0.258, 0.240, -0.498),  # one own
    (0.839, -0.248, -0.590),  # light own
    (-0.236, 0.811, -0.575),  # value of one kind
    (-0.065, 0.157, -0.092),  # name swapped
    (-0.784, 0.017, 0.767),  # scopes
)
