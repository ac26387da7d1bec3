"""A few numbers that describe a list of measurements."""


def mean(values):
    """The arithmetic mean."""
    return sum(values) / len(values)


def median(values):
    """The value in the middle; with an even count, the mean of the two in the middle."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle]


def spread(values):
    """How far the smallest and the largest value are apart."""
    return max(values) - min(values)
