"""Real images, small enough for any machine: the handwritten digits bundled with scikit-learn."""

from __future__ import annotations

import torch
from torch.nn.functional import cross_entropy

from .data import Data

IMAGES, FEATURES, TARGETS = 1797, 64, 10


def digits(samples: int, features: int, targets: int) -> Data:
    """Load the digits, split into training and test set the same way for every seed.

    Args:
        samples: images to train on, 1 to 1796; the others are the test set.
        features: 64, the pixels of an 8x8 image.
        targets: 10, the classes.

    Returns:
        Data with pixels scaled to [0, 1] in float32, classes in int64, and cross-entropy, the
        mean over the batch, as its loss.

    Raises:
        ValueError: a size that the digits do not have.

    Source: scikit-learn, `load_digits`; E. Alpaydin and C. Kaynak, UCI repository, 1998.
    """
    if (features, targets) != (FEATURES, TARGETS):
        raise ValueError(
            f"data.features={features}, data.targets={targets} is not valid; the digits have "
            f"{FEATURES} features and {TARGETS} targets"
        )
    if not 1 <= samples < IMAGES:
        raise ValueError(
            f"data.samples={samples} is not valid; use 1 to {IMAGES - 1} of the {IMAGES} digits"
        )
    from sklearn.datasets import load_digits  # a second of imports that other data do not need

    bunch = load_digits()
    x = torch.tensor(bunch.data / 16, dtype=torch.float32)
    y = torch.tensor(bunch.target, dtype=torch.int64)
    order = torch.randperm(IMAGES, generator=torch.Generator().manual_seed(0))
    train, test = order[:samples], order[samples:]
    return Data(x[train], y[train], cross_entropy, x[test], y[test])
