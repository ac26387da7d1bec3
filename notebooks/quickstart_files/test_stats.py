"""What stats.py should do. Run it with: python -m unittest test_stats"""

import unittest

from stats import mean, median, spread


class StatsTest(unittest.TestCase):
    def test_mean(self):
        self.assertEqual(mean([1, 2, 6]), 3)

    def test_median_of_an_odd_count(self):
        self.assertEqual(median([9, 1, 5]), 5)

    def test_median_of_an_even_count(self):
        self.assertEqual(median([9, 1, 5, 3]), 4)

    def test_spread(self):
        self.assertEqual(spread([4, -1, 2]), 5)


if __name__ == "__main__":
    unittest.main()
